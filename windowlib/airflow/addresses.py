"""Addresses of the pages in Airflow: `/windowlib/`, below the path of Airflow itself."""

from __future__ import annotations

from urllib.parse import urlparse

from airflow.configuration import conf

PREFIX = "/windowlib"


def outside() -> str:
    """Path of Airflow in its public URL (`api.base_url`), without a slash at the end."""
    return urlparse(conf.get("api", "base_url", fallback="")).path.rstrip("/")


def home_page() -> str:
    """Address of the page with a row for each pipeline."""
    return f"{outside()}{PREFIX}/"


def page_of(pipeline: str) -> str:
    """Address of the page of a pipeline."""
    return f"{home_page()}{pipeline}/"


def preview_of(pipeline: str, preview_id: str) -> str:
    """Address of the page of a rerun's preview."""
    return f"{page_of(pipeline)}previews/{preview_id}"
