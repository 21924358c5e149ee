"""JARs that windowlib adds to Spark's own, locked in `jars.lock` by coordinates and sha256, like Python packages.

A run works without these JARs. With the local file system for Hadoop (`LOCAL_FILES`) Spark writes files on this machine
faster, because Hadoop's own file system starts a `chmod` process for each file and folder. The other JARs let Spark
itself read and maintain Delta tables. `windowlib setup` fetches all JARs (`windowlib.engines.setup_jars`).

`jars-s3.lock` holds the JARs with which Spark reaches S3 (Hadoop's S3A), for definitions that need them. Spark finds
credentials in the environment of its processes, in the profile of the user, or by the role of the machine. No setting
of the JVM holds a secret, because these settings are arguments. Credentials of an Airflow connection are settings of
the session: they are neither arguments nor variables, and Spark replaces their values in its own pages and logs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windowlib.engines.cache import cache_folder
from windowlib.model.errors import InvalidSpec, WindowError
from windowlib.storage.address import is_remote
from windowlib.storage.bucket import S3, split_bucket
from windowlib.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCK = Path(__file__).with_name("jars.lock")
S3_LOCK = LOCK.with_name("jars-s3.lock")
LOCAL_FILES = "hadoop-bare-naked-local-fs"
S3A = "spark.hadoop.fs.s3a"
S3_SETTINGS = {
    "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
    f"{S3A}.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
    f"{S3A}.input.stream.type": "classic",  # the others need native code
    f"{S3A}.performance.flags": "create,delete,mkdir",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",
}
"""Settings for S3A. Requests of a job with two tasks and eight files, counted at a server on 2026-11-29: 172 with these
settings, 194 with version 2 of the algorithm, 228 without the flags, too. The flags omit questions about objects and
folders that the unique names of an attempt answer. The other committers need JARs that are not locked.
"""
KEY, SECRET, TOKEN = "fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token"
PROVIDER = "fs.s3a.aws.credentials.provider"
OPENED_ANEW = ("fs.s3.impl.disable.cache", "fs.s3a.impl.disable.cache")
"""Settings of a session for credentials."""

CLASS_PATH, JARS = "spark.driver.extraClassPath", "spark.jars"
BROUGHT = ("spark.jars", "spark.jars.packages", CLASS_PATH)  # settings by which a definition brings its own JARs


class MissingJars(WindowError):
    """A JAR is missing from the cache folder, or differs from the locked JAR."""


@dataclass(frozen=True, slots=True)
class Jar:
    """JAR with its Maven coordinates and the required checksum of its content."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file(self) -> str:
        """File name of the JAR."""
        return f"{self.name}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.organisation}:{self.name}:{self.version}"


def locked(lock: Path = LOCK) -> list[Jar]:
    """Reads the JARs of a lock file in order. Lines have the form `organisation:name:version --hash=sha256:SUM`."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return [_jar(line) for line in lines if line and not line.startswith("#")]


def _jar(line: str) -> Jar:
    coordinates, _, sha256 = line.partition(" --hash=sha256:")
    organisation, name, version = coordinates.split(":")
    return Jar(organisation, name, version, sha256)


def present(folder: Path, jars: Sequence[Jar]) -> bool:
    """Tests if the folder has files for all these JARs, without reading their content."""
    return all((folder / jar.file).is_file() for jar in jars)


def check(folder: Path, jars: Sequence[Jar]) -> None:
    """Raises `MissingJars` if a JAR is missing from the folder, or its content differs from the locked JAR."""
    for jar in jars:
        file = folder / jar.file
        if not file.is_file():
            raise MissingJars(f"{jar} is not in {folder}: run `windowlib setup`")
        actual = hashlib.sha256(file.read_bytes()).hexdigest()
        if actual != jar.sha256:
            raise MissingJars(
                f"{file} is not the locked {jar}: it has sha256 {actual}, need {jar.sha256}. Delete it, then run"
                " `windowlib setup`"
            )


def delta_jars() -> list[Path]:
    """Paths of the JARs with which Spark can read and maintain Delta tables. Raises `MissingJars` if one is missing."""
    folder, jars = cache_folder(), locked()
    if not present(folder, jars):
        raise MissingJars(f"Delta's JARs are missing or incomplete in {folder}: run `windowlib setup`")
    return [folder / jar.file for jar in jars]


def jars_to_submit(conf: Mapping[str, str], stores: Collection[Store]) -> list[Path]:
    """JARs that `spark-submit` must load for these storages; without those that were not fetched.

    The driver's JVM runs before a session has settings, and later settings reach only the executors.
    """
    if _brings_hadoop(conf) or not any(
        is_remote(store.url) and split_bucket(store.url)[0].cloud == S3 for store in stores
    ):
        return []
    folder, needed = cache_folder(), locked(S3_LOCK)
    return [folder / jar.file for jar in needed] if present(folder, needed) else []


def local_files_jar() -> Path | None:
    """Path of the JAR with the local file system for Hadoop; None if it has not been fetched."""
    files = (cache_folder() / jar.file for jar in locked() if jar.name == LOCAL_FILES)
    return next(filter(Path.is_file, files), None)


def conf_with_stores(master: str, conf: Mapping[str, str], stores: Collection[Store]) -> dict[str, str]:
    """Settings of a definition, with those that Spark needs for the storages. The definition's own settings win.

    Raises `MissingJars` until `windowlib setup --with s3` has fetched the JARs, and `InvalidSpec` for a kind of object
    store for which there are none.
    """
    remote = [store for store in stores if is_remote(store.url)]
    brings = _brings_hadoop(conf)
    for store in remote:
        if split_bucket(store.url)[0].cloud != S3 and not brings:
            raise InvalidSpec(
                f'{store} cannot be reached by engine = "spark": expected s3://, for which windowlib has the JARs; use'
                ' engine = "sail", or name Hadoop\'s own JARs for it in "spark.jars.packages" of [spark.conf]'
            )
    if not remote:
        return dict(conf)
    added = {} if brings else _with_jars(master, conf)
    return {**hadoop_settings(remote), **conf, **added}


def _brings_hadoop(conf: Mapping[str, str]) -> bool:
    """Tests if a definition brings its own JARs of Hadoop."""
    return any("hadoop-" in conf.get(name, "") for name in BROUGHT)


def hadoop_settings(stores: Collection[Store]) -> dict[str, str]:
    """Settings of a Spark session that reads and writes in these object stores."""
    settings = dict[str, str]()
    for store in stores:
        if split_bucket(store.url)[0].cloud == S3:
            settings |= S3_SETTINGS | _place(store.environment())
    return settings


def _place(variables: Mapping[str, str]) -> dict[str, str]:
    """S3A's settings for the endpoint and the region in the variables of a storage."""
    settings = {f"{S3A}.endpoint.region": variables["AWS_REGION"]}
    if endpoint := variables.get("AWS_ENDPOINT_URL"):
        settings |= {f"{S3A}.endpoint": endpoint, f"{S3A}.path.style.access": "true"}
        settings[f"{S3A}.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    return settings


def _with_jars(master: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Settings with which Spark finds the JARs: on this machine by the class path, on a cluster as files to send."""
    folder, needed = cache_folder(), locked(S3_LOCK)
    if not present(folder, needed):
        raise MissingJars(f"Spark needs JARs for s3:// that are not in {folder}: run `windowlib setup --with s3`")
    files = [str(folder / jar.file) for jar in needed]
    if not master.startswith("local[") and master != "local":
        return {JARS: ",".join(filter(None, [conf.get(JARS, ""), *files]))}
    first = [conf[CLASS_PATH]] if CLASS_PATH in conf else [str(jar) for jar in (local_files_jar(),) if jar]
    return {CLASS_PATH: os.pathsep.join([*first, *files])}


def give_credentials(spark: SparkSession, stores: Collection[Store]) -> None:
    """Sets the credentials of an Airflow connection in a session, and replaces those that were renewed.

    Call it before each batch. Credentials of the usual chain are not set: Spark finds them by itself. Hadoop keeps a
    file system with its first credentials. So after a renewal each task opens its own.
    """
    wanted = _secret_settings({name: value for store in stores for name, value in store.environment().items()})
    if not wanted or all(spark.conf.get(name, None) == value for name, value in wanted.items()):
        return
    if spark.conf.get(SECRET, None) is not None:
        wanted |= dict.fromkeys(OPENED_ANEW, "true")
    for name, value in wanted.items():
        spark.conf.set(name, value)


def _secret_settings(variables: Mapping[str, str]) -> dict[str, str]:
    """S3A's settings for the credentials among the variables of storages; empty if there are none."""
    if "AWS_SECRET_ACCESS_KEY" not in variables:
        return {}
    token = variables.get("AWS_SESSION_TOKEN", "")
    kind = "TemporaryAWSCredentialsProvider" if token else "SimpleAWSCredentialsProvider"
    return {
        KEY: variables["AWS_ACCESS_KEY_ID"],
        SECRET: variables["AWS_SECRET_ACCESS_KEY"],
        TOKEN: token,
        PROVIDER: f"org.apache.hadoop.fs.s3a.{kind}",
    }
