"""An Airflow plugin that shows each pipeline's report under `/windowlib/<pipeline>/`, to users who are logged in.

Installed with this project; every Airflow process loads it, so what only the API server needs is imported on request.
"""

from __future__ import annotations

from pathlib import Path

from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse

PREFIX = "/windowlib"


async def logged_in(request: Request) -> None:
    """Refuses with 401 a user who is not logged in to this Airflow."""
    from airflow.api_fastapi.core_api.security import get_user

    await get_user(request, None, None)


app = FastAPI(title="windowlib reports", docs_url=None, redoc_url=None, openapi_url=None)


@app.get("/{pipeline}/previews/{preview_id}", dependencies=[Depends(logged_in)])
def show_preview(pipeline: str, preview_id: str) -> FileResponse:
    """The page of a rerun's preview."""
    from windowlib.reruns.page import PAGE
    from windowlib.reruns.previews import FOLDER

    folder = (_root(pipeline) / FOLDER).resolve()
    file = (folder / preview_id / PAGE).resolve()
    if not file.is_relative_to(folder) or not file.is_file():
        raise HTTPException(404, f"{pipeline} has no preview {preview_id!r}; its page is kept for 30 days")
    return FileResponse(file)


@app.get("/{pipeline}/{page:path}", dependencies=[Depends(logged_in)])
def show(pipeline: str, page: str) -> FileResponse:
    """A page of the newest report of a pipeline."""
    from windowlib.pages.site import FOLDER, PAGE

    folder = (_root(pipeline) / FOLDER).resolve()
    file = (folder / (page or PAGE)).resolve()
    if not file.is_relative_to(folder):
        raise HTTPException(404, "no such page")
    if not file.is_file():
        raise HTTPException(404, f"{pipeline} has no such page; its report is made by the task `report`")
    return FileResponse(file)


def _root(pipeline: str) -> Path:
    """Where the pipeline of that name keeps its tables. Only names that definitions have lead anywhere."""
    from airflow.configuration import conf

    from windowlib.airflow.pipelines import Broken, definitions, pipelines_folder

    folder = pipelines_folder(Path(conf.get_mandatory_value("core", "dags_folder")))
    for found in definitions(folder):
        if not isinstance(found, Broken) and found.name == pipeline:
            return found.root
    raise HTTPException(404, f"no pipeline {pipeline!r} in {folder}; WINDOWLIB_PIPELINES names another folder")


class WindowlibPlugin(AirflowPlugin):
    """Adds the pages to Airflow's web server."""

    name = "windowlib"
    fastapi_apps = [{"app": app, "url_prefix": PREFIX, "name": "windowlib reports"}]  # noqa: RUF012
