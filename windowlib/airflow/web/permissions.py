"""Rights of a user about DAGs, and the origin of a submitted form.

Airflow's auth manager decides. The right that allows an answer in *Required Actions* also allows to set a file aside:
both decide which data the pipeline publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from airflow.configuration import conf
from fastapi import HTTPException, Request

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import ResourceMethod
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity


def may_read(user: Any, dag: str) -> bool:
    """Tests if a user may read a DAG."""
    return _may(user, "GET", dag)


def may_decide(user: Any, dag: str) -> bool:
    """Tests if a user may answer the questions of a DAG."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

    return _may(user, "PUT", dag, DagAccessEntity.HITL_DETAIL)


def may_start(user: Any, dag: str) -> bool:
    """Tests if a user may start runs of a DAG. False if Airflow has no such DAG."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
    from airflow.models.dag import DagModel

    return DagModel.get_current(dag) is not None and _may(user, "POST", dag, DagAccessEntity.RUN)


def _may(user: Any, method: ResourceMethod, dag: str, entity: DagAccessEntity | None = None) -> bool:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
    from airflow.models.dag import DagModel

    details = DagDetails(id=dag, team_name=DagModel.get_team_name(dag))
    return get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=user)


async def submitted_form(request: Request) -> Mapping[str, str]:
    """Fields of a form that one of our pages has submitted, without spaces around values.

    Refuses a form of another site with 403: the browser would send the user's cookie with it.
    """
    if not is_of_our_page(request.headers):
        raise HTTPException(
            HTTPStatus.FORBIDDEN, "the form was not sent by a page of this Airflow; open the page again"
        )
    content = (await request.body()).decode(errors="replace")
    return {name: text.strip() for name, text in parse_qsl(content, keep_blank_values=True)}


def is_of_our_page(headers: Mapping[str, str]) -> bool:
    """Tests if a page of this Airflow sent a request.

    Browsers state the origin of a form in `Sec-Fetch-Site`, or, on sites without TLS, only in `Origin`.

    >>> is_of_our_page({"sec-fetch-site": "same-origin"}), is_of_our_page({"sec-fetch-site": "same-site"})
    (True, False)
    >>> is_of_our_page({"origin": "http://airflow:8080", "host": "airflow:8080"}), is_of_our_page({"host": "airflow"})
    (True, False)
    """
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    own = {headers.get("host"), urlsplit(conf.get("api", "base_url", fallback="")).netloc} - {None, ""}
    return urlsplit(headers.get("origin", "")).netloc in own
