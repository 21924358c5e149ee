"""Command `windowlib setup`, which prepares what pip does not install: JARs and a class archive."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from windowlib.cli.display import console
from windowlib.cli.progress import progress


class Cloud(StrEnum):
    """Kind of object store for which Spark needs JARs."""

    S3 = "s3"


Clouds = Annotated[
    list[Cloud] | None,
    typer.Option("--with", help="Also fetch the JARs with which Spark reaches an object store.", show_default=False),
]


def setup(
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing: fail if a JAR is missing or is not the locked one.")
    ] = False,
    archive: Annotated[
        bool,
        typer.Option("--archive", help="Also archive the classes that Spark loads, which takes half a minute or more."),
    ] = False,
    clouds: Clouds = None,
    ivy_settings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.xml",
            exists=True,
            dir_okay=False,
            envvar="WINDOWLIB_IVY_SETTINGS",
            help="Ivy settings that name another repository than the public Maven one.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Find Java and fetch JARs for Spark; with --archive also archive the classes that Spark loads.

    With the JARs Spark writes files faster on this machine and can read Delta tables itself. The archive saves some
    seconds of each run: make it on a machine that runs often. Repeating the command changes nothing. All files go into
    the cache folder of the user, or into the folder that [b]WINDOWLIB_CACHE[/b] names. Runs work without them, but more
    slowly.

    [dim]windowlib setup[/dim]   or   [dim]windowlib setup --archive[/dim]   or   [dim]windowlib setup --with s3[/dim]
    """
    from windowlib.engines.setup_java import find_java

    typer.echo(f"Java: {find_java()}")
    typer.echo(_jars(bool(clouds), check, ivy_settings))
    if archive or check:
        typer.echo(_class_archive(check))


def _jars(with_s3: bool, check: bool, ivy_settings: Path | None) -> str:
    from windowlib.engines import jars
    from windowlib.engines.cache import cache_folder, writable_cache_folder
    from windowlib.engines.setup_jars import fetch

    folder, wanted = cache_folder(), jars.locked()
    if with_s3:
        wanted = [*dict.fromkeys([*wanted, *jars.locked(jars.S3_LOCK)])]
    if check or jars.present(folder, wanted):
        jars.check(folder, wanted)
        return f"JARs: {len(wanted)} in {folder}, all as locked"
    writable_cache_folder()
    typer.echo(f"fetching {len(wanted)} JARs ({27 if with_s3 else 14} MB, half a minute) ...")
    with progress(console(), "fetching JARs"):
        fetch(folder, wanted, ivy_settings)
    return f"JARs: {len(wanted)} fetched into {folder}, all as locked"


def _class_archive(check: bool) -> str:
    from windowlib.engines import jvm, setup_cds
    from windowlib.engines.spark import settings_of

    if jvm.archive_fits(settings_of("local[*]", {})):
        return f"class archive: {jvm.archive()}"
    if check:
        return "class archive: none that fits, so Spark starts more slowly: `windowlib setup --archive` makes one"
    typer.echo(
        "running two small pipelines to archive the classes that they load (half a minute, more on a busy machine) ..."
    )
    with progress(console(), "making the class archive"):
        try:
            return f"class archive: made as {setup_cds.make()}"
        except setup_cds.NoArchive as error:  # runs do not need the archive
            return f"class archive: {error}; Spark starts more slowly"
