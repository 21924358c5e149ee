"""An Airflow plugin that shows pipelines under `/windowlib/`, to users who are logged in and may read their DAGs.

Installed with this project; every Airflow process loads it, so what only the API server needs is imported on request.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from windowlib.airflow.addresses import PREFIX, home_page, outside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windowlib.airflow.pipelines import BrokenPipelines
    from windowlib.definition.definition import Definition

NO_LOGIN = HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN  # none, or one that this Airflow did not give
LOGIN = "/api/v2/auth/login"  # Airflow's; leads to the login page of whichever auth manager it has
PREVIEW_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"  # no script at all


class LoginFirst(Exception):
    """A browser asks for a page without a login that counts."""


async def logged_in(request: Request) -> Any:
    """The user; one who is not logged in to this Airflow is refused with 401, and in a browser led to the login."""
    from airflow.api_fastapi.core_api.security import get_user

    try:
        return await get_user(request, None, None)
    except HTTPException as error:
        if error.status_code in NO_LOGIN and _is_browser(request):
            raise LoginFirst from error
        raise


def _is_browser(request: Request) -> bool:
    """Whether a person waits for a page: a browser asks for HTML by name and has no token of its own to send."""
    return "text/html" in request.headers.get("accept", "") and "authorization" not in request.headers


async def show_login(request: Request, _: Exception) -> RedirectResponse:
    """Airflow's login page, which leads back to the page that was asked for."""
    inside = request.url.path.removeprefix(request.scope.get("root_path", ""))
    asked = f"{outside()}{PREFIX}{inside}" + (f"?{request.url.query}" if request.url.query else "")
    to = f"{outside()}{LOGIN}?next={quote(asked, safe='')}"
    return RedirectResponse(to, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})


User = Annotated[Any, Depends(logged_in)]
app = FastAPI(title="windowlib", docs_url=None, redoc_url=None, openapi_url=None)
app.add_exception_handler(LoginFirst, show_login)


@app.get("/")
def show_home(user: User) -> HTMLResponse:
    """A row for each pipeline whose DAG the user may read; also for those whose definition cannot be used."""
    from windowlib.airflow.live_pages import home
    from windowlib.airflow.pipelines import dag_id

    found = [one for one in _definitions() if may_read(user, dag_id(one))]
    broken = [one for one in _broken() if may_read(user, one.dag_id)]
    return _answer(home(found, broken, _now_ms(), {one.name: next_run(dag_id(one)) for one in found}))


@app.get("/{name}/previews/{preview_id}")
def show_preview(name: str, preview_id: str, user: User) -> HTMLResponse:
    """The page of a rerun's preview; one that was applied says so."""
    from windowlib.airflow.applied import batch_that_applied
    from windowlib.reruns.page import PAGE, applied_by
    from windowlib.reruns.previews import FOLDER

    found = _pipeline(name, user)
    pages = {page.parent.name: page for page in (found.root / FOLDER).glob(f"*/{PAGE}")}
    if preview_id not in pages:
        raise HTTPException(404, f"{name} has no preview {preview_id!r}; its page is kept for 30 days")
    page, batch_id = pages[preview_id].read_text(encoding="utf-8"), batch_that_applied(found, preview_id)
    return _answer(page if batch_id is None else applied_by(page, batch_id), PREVIEW_POLICY)


@app.get("/{name}/results")
def show_results(name: str, request: Request, user: User) -> HTMLResponse:
    """The newest results of a pipeline, of a key or a time that the form names."""
    from windowlib.airflow.live_pages import look_for

    return _answer(look_for(_pipeline(name, user), request.query_params, _now_ms()))


@app.get("/{name}/")
def show_pipeline(name: str, user: User) -> HTMLResponse:
    """The page of a pipeline; of one whose definition cannot be used, why."""
    from windowlib.airflow.live_pages import page, page_of_broken

    for one in _broken():
        if one.name == name and may_read(user, one.dag_id):
            return _answer(page_of_broken(one, _now_ms()))
    return _answer(page(_pipeline(name, user), _now_ms()))


def may_read(user: Any, dag: str) -> bool:
    """Whether a user may read a DAG."""
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
    from airflow.models.dag import DagModel

    details = DagDetails(id=dag, team_name=DagModel.get_team_name(dag))
    return get_auth_manager().is_authorized_dag(method="GET", details=details, user=user)


def next_run(dag: str) -> str:
    """When a DAG runs next, in words; an empty text where it has no schedule."""
    from airflow.models.dag import DagModel

    from windowlib.definition.instants import instant, time_of

    found = DagModel.get_dagmodel(dag)
    if found is None or found.next_dagrun_create_after is None:
        return ""
    if found.is_paused:
        return "paused: no run is due"
    return f"next run {instant(time_of(found.next_dagrun_create_after))}"


def _pipeline(name: str, user: Any) -> Definition:
    """The pipeline of that name; refuses with 404 where there is none, or none that the user may see."""
    from windowlib.airflow.pipelines import dag_id

    for found in _definitions():
        if found.name == name and may_read(user, dag_id(found)):
            return found
    raise HTTPException(404, f"no pipeline {name!r} that you may see")


def _definitions() -> list[Definition]:
    """The pipelines of this Airflow; those that are broken are not among them."""
    from windowlib.airflow.pipelines import BrokenPipelines, definitions

    return [found for found in definitions(_folder()) if not isinstance(found, BrokenPipelines)]


def _broken() -> Iterator[BrokenPipelines]:
    """What stands in the place of pipelines, alone or together, that cannot be scheduled."""
    from windowlib.airflow.pipelines import BrokenPipelines, dag_groups

    return (found for found in dag_groups(_folder()) if isinstance(found, BrokenPipelines))


def _folder() -> Path:
    from windowlib.airflow.pipelines import pipelines_folder

    return pipelines_folder(Path(conf.get_mandatory_value("core", "dags_folder")))


def _answer(page: str, policy: str | None = None) -> HTMLResponse:
    from windowlib.pages.render import policy as of_pages

    headers = {
        "Content-Security-Policy": policy or of_pages(),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "private, no-cache",
    }
    return HTMLResponse(page, headers=headers)


def _now_ms() -> int:
    """To the second, which is how a page says it."""
    return int(time.time()) * 1000


class WindowlibPlugin(AirflowPlugin):
    """Adds the pages to Airflow's web server, and a link to them to its menu."""

    name = "windowlib"
    fastapi_apps = [{"app": app, "url_prefix": PREFIX, "name": "windowlib"}]  # noqa: RUF012
    # Below *Browse*: of a view at the top level Airflow 3.3 makes a button that opens nothing.
    external_views = [  # noqa: RUF012
        {"name": "Pipelines", "href": home_page(), "destination": "nav", "category": "browse"}
    ]
