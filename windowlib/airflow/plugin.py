"""Airflow plugin that shows pipelines under `/windowlib/` to users who are logged in and may read their DAGs.

Actions need further rights (`windowlib.airflow.web.permissions`). A user without a right sees no link to the action,
and its form is refused with 403.

It is installed with this project, and every Airflow process loads it. Modules that only the API server needs are
therefore imported on request.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

from airflow.configuration import conf
from airflow.plugins_manager import AirflowPlugin
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from windowlib.airflow.addresses import PREFIX, home_page, outside
from windowlib.airflow.web.permissions import may_decide, may_read, may_start, submitted_form
from windowlib.definition.commands import naming
from windowlib.model.errors import WindowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windowlib.airflow.live_pages import Allowed
    from windowlib.airflow.pipelines import BrokenPipelines
    from windowlib.definition.definition import Definition

NO_LOGIN = HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN  # no login, or a login of another Airflow
DECIDING = "answer the Required Actions of the DAG of this pipeline"
STARTING = "start runs of the DAG rerun_windows"
LOGIN = "/api/v2/auth/login"  # leads to the login page of Airflow's auth manager
PREVIEW_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"  # no scripts


class LoginFirst(Exception):
    """A browser requested a page without a valid login."""


async def logged_in(request: Request) -> Any:
    """Returns the user of a request. Without a valid login, raises an HTTP error, or `LoginFirst` for browsers."""
    from airflow.api_fastapi.core_api.security import get_user

    try:
        return await get_user(request, None, None)
    except HTTPException as error:
        if error.status_code in NO_LOGIN and _is_browser(request):
            raise LoginFirst from error
        raise


def _is_browser(request: Request) -> bool:
    """Tests if a browser sent the request: it accepts HTML by name, and sends no token in a header."""
    return "text/html" in request.headers.get("accept", "") and "authorization" not in request.headers


async def show_login(request: Request, _: Exception) -> RedirectResponse:
    """Redirects to Airflow's login page, which leads back to the requested page."""
    inside = request.url.path.removeprefix(request.scope.get("root_path", ""))
    address = f"{outside()}{PREFIX}{inside}" + (f"?{request.url.query}" if request.url.query else "")
    to = f"{outside()}{LOGIN}?next={quote(address, safe='')}"
    return RedirectResponse(to, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})


User = Annotated[Any, Depends(logged_in)]
Form = Annotated[Mapping[str, str], Depends(submitted_form)]
app = FastAPI(title="windowlib", docs_url=None, redoc_url=None, openapi_url=None)
app.add_exception_handler(LoginFirst, show_login)


@app.get("/")
def show_home(user: User) -> HTMLResponse:
    """Home page: a row for each pipeline whose DAG the user may read, also for broken definitions."""
    from windowlib.airflow.live_pages import home
    from windowlib.airflow.pipelines import dag_id

    readable = [pipeline for pipeline in _definitions() if may_read(user, dag_id(pipeline))]
    broken = [pipeline for pipeline in _broken() if may_read(user, pipeline.dag_id)]
    return _answer(
        home(readable, broken, _now_ms(), {pipeline.name: next_run(dag_id(pipeline)) for pipeline in readable})
    )


@app.get("/{name}/previews/{preview_id}")
def show_preview(name: str, preview_id: str, user: User) -> HTMLResponse:
    """Page of a rerun's preview, which says if it was applied, and leads to its open review a user who may answer."""
    from windowlib.airflow.applied import batch_that_applied
    from windowlib.airflow.web.actions import RERUN_DAG
    from windowlib.airflow.web.questions import open_review
    from windowlib.reruns.page import PAGE, applied_by, page_inside
    from windowlib.reruns.previews import FOLDER

    definition = _pipeline(name, user)
    is_id = re.fullmatch(r"[\w-]{1,50}", preview_id)  # not a path out of the folder
    stored = definition.store.get(f"{FOLDER}/{preview_id}/{PAGE}") if is_id else None
    if stored is None:
        raise HTTPException(404, f"{name} has no preview {preview_id!r}; its page is kept for 30 days")
    review = open_review(preview_id) if may_decide(user, RERUN_DAG) else None
    page, batch_id = page_inside(stored.decode(), name, review), batch_that_applied(definition, preview_id)
    return _answer(page if batch_id is None else applied_by(page, batch_id), PREVIEW_POLICY)


@app.get("/{name}/results")
def show_results(name: str, request: Request, user: User) -> HTMLResponse:
    """Page of the newest results of a pipeline, for a key or a time from the form."""
    from windowlib.airflow.live_pages import search_page

    return _answer(search_page(_pipeline(name, user), request.query_params, _now_ms()))


@app.get("/{name}/explain")
def show_explained(name: str, request: Request, user: User) -> HTMLResponse:
    """Page with the events, versions and causes of a result."""
    from windowlib.airflow.live_pages import explained_page

    return _answer(explained_page(_pipeline(name, user), request.query_params, _now_ms()))


@app.get("/{name}/set-aside")
def show_file_form(name: str, request: Request, user: User) -> HTMLResponse:
    """Page with the form that sets a file aside."""
    from windowlib.airflow.live_pages import file_form_page

    return _answer(file_form_page(_to_decide(name, user), request.query_params, _now_ms()))


@app.post("/{name}/set-aside")
def set_file_aside(name: str, user: User, form: Form) -> Response:
    """Sets a file aside, or takes it back. Leads back to the page of the pipeline."""
    from windowlib.airflow.live_pages import file_form_page
    from windowlib.airflow.web.actions import decide_file

    return _submitted(_to_decide(name, user), user, form, decide_file, file_form_page)


@app.get("/{name}/rerun")
def show_rerun_form(name: str, request: Request, user: User) -> HTMLResponse:
    """Page with the form that starts a rerun, filled with the range of a day."""
    from windowlib.airflow.live_pages import rerun_form_page

    return _answer(rerun_form_page(_to_rerun(name, user), request.query_params, _now_ms()))


@app.post("/{name}/rerun")
def start_rerun(name: str, user: User, form: Form) -> Response:
    """Starts a rerun. Leads to its run in Airflow."""
    from windowlib.airflow.live_pages import rerun_form_page
    from windowlib.airflow.web import actions

    return _submitted(_to_rerun(name, user), user, form, actions.start_rerun, rerun_form_page)


@app.get("/{name}/")
def show_pipeline(name: str, user: User, since: str = "") -> HTMLResponse:
    """Page of a pipeline. For a broken definition, a page with the reason."""
    from windowlib.airflow.live_pages import page, page_of_broken

    for pipeline in _broken():
        if pipeline.name == name and may_read(user, pipeline.dag_id):
            return _answer(page_of_broken(pipeline, _now_ms()))
    definition = _pipeline(name, user)
    return _answer(page(definition, _now_ms(), since.strip(), _allowed(user, definition)))


def _allowed(user: Any, definition: Definition) -> Allowed:
    """Actions on a pipeline that the user may do."""
    from windowlib.airflow.live_pages import Allowed
    from windowlib.airflow.pipelines import dag_id
    from windowlib.airflow.web.actions import RERUN_DAG
    from windowlib.airflow.web.questions import open_question

    decides = may_decide(user, dag_id(definition))
    return Allowed(open_question(definition) if decides else None, decides, may_start(user, RERUN_DAG))


def _to_decide(name: str, user: Any) -> Definition:
    """Pipeline whose files the user may set aside."""
    from windowlib.airflow.pipelines import dag_id

    definition = _pipeline(name, user)
    _check(may_decide(user, dag_id(definition)), DECIDING)
    return definition


def _to_rerun(name: str, user: Any) -> Definition:
    """Pipeline that the user may rerun."""
    from windowlib.airflow.web.actions import RERUN_DAG

    definition = _pipeline(name, user)
    _check(may_start(user, RERUN_DAG), STARTING)
    return definition


def _submitted(
    definition: Definition,
    user: Any,
    form: Mapping[str, str],
    act: Callable[[Definition, Mapping[str, str], str], str],
    form_page: Callable[[Definition, Mapping[str, str], int, str], str],
) -> Response:
    """Does what a form requests, and leads to the address that `act` returns. If it is refused, the form again."""
    try:
        return RedirectResponse(act(definition, form, user.get_name()), HTTPStatus.SEE_OTHER)
    except (WindowError, OSError) as error:
        problem = naming(str(error), definition.file)
        return _answer(form_page(definition, form, _now_ms(), problem), status=HTTPStatus.CONFLICT)


def _check(allowed: bool, right: str) -> None:
    """Refuses with 403 if the user lacks a right."""
    if not allowed:
        raise HTTPException(HTTPStatus.FORBIDDEN, f"you may not do this: it needs the right to {right}")


def next_run(dag: str) -> str:
    """Next run of a DAG, in words; empty if it has no schedule."""
    from airflow.models.dag import DagModel

    from windowlib.definition.instants import time_of
    from windowlib.pages.words import moment

    model = DagModel.get_dagmodel(dag)
    if model is None or model.next_dagrun_create_after is None:
        return ""
    return "paused" if model.is_paused else moment(time_of(model.next_dagrun_create_after), _now_ms())


def _pipeline(name: str, user: Any) -> Definition:
    """Pipeline with a name. Refuses with 404 if there is none, or the user may not see it."""
    from windowlib.airflow.pipelines import dag_id

    for definition in _definitions():
        if definition.name == name and may_read(user, dag_id(definition)):
            return definition
    raise HTTPException(404, f"no pipeline {name!r} that you may see")


def _definitions() -> list[Definition]:
    """Pipelines of this Airflow that are not broken."""
    from windowlib.airflow.connections.access import connected
    from windowlib.airflow.pipelines import BrokenPipelines, definitions

    return [connected(pipeline) for pipeline in definitions(_folder()) if not isinstance(pipeline, BrokenPipelines)]


def _broken() -> Iterator[BrokenPipelines]:
    """Pipelines of this Airflow that are broken and cannot be scheduled."""
    from windowlib.airflow.pipelines import BrokenPipelines, dag_groups

    return (group for group in dag_groups(_folder()) if isinstance(group, BrokenPipelines))


def _folder() -> Path:
    from windowlib.airflow.pipelines import pipelines_folder

    return pipelines_folder(Path(conf.get_mandatory_value("core", "dags_folder")))


def _answer(page: str, policy: str | None = None, status: HTTPStatus = HTTPStatus.OK) -> HTMLResponse:
    from windowlib.pages.render import policy as page_policy

    headers = {
        "Content-Security-Policy": policy or page_policy(),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cache-Control": "private, no-cache",
    }
    return HTMLResponse(page, status, headers)


def _now_ms() -> int:
    """Current time, floored to the second, as pages show it."""
    return int(time.time()) * 1000


class WindowlibPlugin(AirflowPlugin):
    """Adds the pages to Airflow's web server, and a link to them to its menu."""

    name = "windowlib"
    fastapi_apps = [{"app": app, "url_prefix": PREFIX, "name": "windowlib"}]  # noqa: RUF012
    # Below *Browse*: at the top level, Airflow 3.3 shows a button that opens nothing.
    external_views = [  # noqa: RUF012
        {"name": "Pipelines", "href": home_page(), "destination": "nav", "category": "browse"}
    ]
