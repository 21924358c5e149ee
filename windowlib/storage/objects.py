"""Objects in a bucket or container: S3 and compatible stores, Azure and Google Cloud, through obstore.

Each operation that may be repeated is repeated for a while (`windowlib.storage.repeats`). `create` is not repeated
blindly: after a lost answer, or if the name is taken, the stored object is compared with the data.

There are no folders. A folder without objects is empty, and deleting its last object leaves nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from windowlib.storage import clients
from windowlib.storage.answers import Refusal, StorageFailed, error_about
from windowlib.storage.arrow_files import arrow_files
from windowlib.storage.at_once import at_once
from windowlib.storage.bucket import AZURE, S3, BucketAddress
from windowlib.storage.clients import client_of
from windowlib.storage.credentials import Access, usual_access
from windowlib.storage.object_file import pieces
from windowlib.storage.object_listing import UNFIT, below, described, listed
from windowlib.storage.repeats import Patience, Requests
from windowlib.storage.store import ObjectInfo, Store

if TYPE_CHECKING:
    from obstore.store import ObjectStore
    from pyarrow import fs

AT_ONCE = 64  # requests
PART_BYTES = 32 * 1024 * 1024  # larger objects are sent in parts
PARTS_AT_ONCE = 2  # of an object whose content comes in pieces
LARGEST_COPY = 5 * 1024**3  # bytes, on S3 in one request
DELETED_AT_ONCE = 1000
DELETED_AT_ONCE_IN_AZURE = 256
T = TypeVar("T")
AccessOf: TypeAlias = Callable[[BucketAddress], Access]


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of a bucket whose names begin with `folder`. It implements `windowlib.storage.store.Store`.

    `access` gives the endpoint and the credentials, at the first request of each process.

    >>> Objects(BucketAddress("s3", "events"), "shop").below("results")
    Objects(bucket=BucketAddress(scheme='s3', name='events', account=''), folder='shop/results')
    """

    bucket: BucketAddress
    folder: str = ""
    access: AccessOf = field(default=usual_access, repr=False)

    @property
    def url(self) -> str:
        """Address of the folder."""
        return f"{self.bucket.url}/{self.folder}" if self.folder else self.bucket.url

    def __str__(self) -> str:
        return self.url

    def below(self, folder: str) -> Objects:
        """The objects in a folder below this one."""
        return dataclasses.replace(self, folder=self._name(folder))

    def above(self) -> tuple[Objects, str] | None:
        """The folder above, and the name of this folder in it; None for the bucket."""
        above, _, name = self.folder.rpartition("/")
        return (dataclasses.replace(self, folder=above), name) if name else None

    def get(self, path: str) -> bytes | None:
        """Content of an object; None if it does not exist."""
        name = self._name(path)
        try:
            return self._repeated(path, lambda store: bytes(store.get(name).bytes()))
        except FileNotFoundError:
            return None

    def get_many(self, paths: Sequence[str]) -> list[bytes | None]:
        """Contents of several objects. None for a missing object."""
        return at_once(self.get, paths, AT_ONCE)

    def get_range(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``[start, end)`` of an object; fewer if the object ends before. Raises FileNotFoundError."""
        from obstore.exceptions import BaseError

        name = self._name(path)

        def step(store: ObjectStore) -> bytes:
            try:
                return bytes(store.get_range(name, start=start, end=max(end, start + 1)))[: max(0, end - start)]
            except BaseError:
                if store.head(name)["size"] <= start:
                    return b""
                raise

        return self._repeated(path, step)

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """Sizes of several objects in bytes, by a HEAD each. None for a missing object."""
        return [None if about is None else about.size_bytes for about in self.infos(paths)]

    def infos(self, paths: Sequence[str]) -> list[ObjectInfo | None]:
        """Descriptions of several objects, by a HEAD each. None for a missing object."""
        return at_once(self._info, paths, AT_ONCE)

    def create(self, path: str, data: bytes) -> bool:
        """Stores an object unless the name is taken. Tests if the stored object holds `data`."""
        name, requests = self._name(path), Requests(self.bucket, self.access)

        def step(store: ObjectStore) -> bool:
            store.put(name, data, mode="create", use_multipart=False)
            return True

        patience = Patience()
        while isinstance(created := requests.tried(step), Refusal):
            if created.may_pass and (stored := self.get(path)) is not None:
                return stored == data
            if not (created.may_pass and patience.waits()):
                raise error_about(created, self.bucket, f"{self.url}/{path}")
        return True

    def put(self, path: str, data: bytes | Iterable[bytes]) -> None:
        """Stores an object, or replaces its content. Sends data in pieces in parts of `PART_BYTES`.

        Parts of an upload that fails stay in the bucket, out of sight, until a rule of the bucket deletes them.
        """
        parts = iter([data]) if isinstance(data, bytes) else _joined(data, PART_BYTES)
        begin = [*islice(parts, 2)]
        if len(begin) == 2:
            self._put_parts(path, chain(begin, parts))
            return
        name, whole = self._name(path), b"".join(begin)
        in_parts = len(whole) > PART_BYTES
        self._repeated(path, lambda store: store.put(name, whole, use_multipart=in_parts, chunk_size=PART_BYTES))

    def copy(self, source: str, to: Store, target: str) -> None:
        """Lets the storage copy an object in its bucket. Reads the object if it is too large for that.

        Replaces an existing target. Raises FileNotFoundError.
        """
        if not f"{to.url}/".startswith(f"{self.bucket.url}/"):
            raise ValueError(f"{to} is not in {self.bucket}: expected a folder of the same bucket")
        old, goal = self._name(source), dataclasses.replace(self, folder=to.url[len(self.bucket.url) + 1 :])
        new = goal._name(target)
        try:
            self._repeated(source, lambda store: store.copy(old, new, overwrite=True))
            return
        except OSError as error:
            failure = error
        about = self._info(source) if self.bucket.cloud == S3 else None
        if about is None or about.size_bytes <= LARGEST_COPY:
            raise failure
        goal.put(target, pieces(self, source, about.size_bytes))

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes objects, many in a request. Ignores missing objects."""
        chosen = [*paths]
        step = DELETED_AT_ONCE_IN_AZURE if self.bucket.cloud == AZURE else DELETED_AT_ONCE
        at_once(self._delete, [chosen[at : at + step] for at in range(0, len(chosen), step)])

    def clear(self) -> None:
        """Deletes all objects of the folder."""
        self.delete([info.path for info in self.list()])

    def list(self, prefix: str = "", after: str = "") -> Iterator[ObjectInfo]:
        """Objects whose path begins with `prefix` and is greater than `after`, sorted by path.

        Asks for a thousand names at a time. Raises OSError if the storage lists in another order.
        """
        for info in self._listed(prefix.rpartition("/")[0], after):
            if info.path.startswith(prefix):
                yield info
            elif info.path > prefix:
                return

    def scan(
        self, wanted: Callable[[str], bool], enters: Callable[[str], bool], after: str = ""
    ) -> Iterator[ObjectInfo]:
        """Wanted objects with a path greater than `after`, sorted by path. Omits markers of folders.

        Asks `enters` for the folders of objects after `after`. Without objects it yields nothing.
        """
        entered: dict[str, bool] = {"": True}

        def is_entered(folder: str) -> bool:
            if folder not in entered:
                entered[folder] = is_entered(folder.rpartition("/")[0]) and enters(folder)
            return entered[folder]

        for info in self._listed("", after):
            if not (is_entered(info.path.rpartition("/")[0]) and wanted(info.path)):
                continue
            if info.size_bytes or self._info(info.path):  # a marker `a/` is listed as `a`
                yield info

    def unreadable(self, path: str = "") -> None:
        """None: the storage does not tell which objects this user may read."""

    def require_lasting_access(self) -> None:
        """Raises `AccessDenied` if the credentials expire within a quarter of an hour, although they were renewed."""
        client_of(self.bucket, self.access).credentials.require_lasting()

    def no_folder(self) -> None:
        """None: an object prevents no other object."""

    def free_bytes(self) -> None:
        """None: the storage has no limit that it reports."""

    def filesystem(self) -> fs.FileSystem:
        """The objects as Arrow's own file system, with credentials that are valid now."""
        return arrow_files(self.bucket, self.folder, client_of(self.bucket, self.access))

    def options(self) -> dict[str, str]:
        """Settings for delta-rs, with credentials that are valid now."""
        settings = client_of(self.bucket, self.access).options(self.bucket.cloud)
        return {**settings, "retry_timeout": f"{clients.RETRY_S * 1000:.0f}ms"}

    def environment(self) -> dict[str, str]:
        """Variables for an engine in this process. On S3 and Google Cloud, engines follow the usual chain themselves.

        On Azure, engines know only a part of the chain, so they are given the credentials of now.
        """
        secrets = self.access is not usual_access or self.bucket.cloud == AZURE
        return client_of(self.bucket, self.access).options(self.bucket.cloud, secrets=secrets)

    def sync(self, paths: Iterable[str]) -> None:
        """Does nothing: what an object store has acknowledged is durable."""

    def _name(self, path: str) -> str:
        if UNFIT.search(path):
            raise StorageFailed(
                f"{self.url}/{path!r} cannot be stored: expected names without backslashes, control characters and"
                " empty, `.` or `..` parts; rename it"
            )
        return below(self.folder, path)

    def _info(self, path: str) -> ObjectInfo | None:
        name = self._name(path)
        try:
            return described(self._repeated(path, lambda store: store.head(name)), self.folder)
        except FileNotFoundError:
            return None

    def _put_parts(self, path: str, parts: Iterable[bytes]) -> None:
        """Stores an object whose content comes in pieces. It appears with the last part."""
        import obstore

        name, place, requests = self._name(path), f"{self.url}/{path}", Requests(self.bucket, self.access)
        writer = requests.once(
            place,
            lambda store: obstore.open_writer(store, name, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE),
        )
        for part in parts:
            requests.once(place, lambda _, part=part: writer.write(part))  # type: ignore[misc]
        requests.once(place, lambda _: writer.close())

    def _delete(self, paths: Sequence[str]) -> None:
        """Deletes in one request. If the storage complains of a missing object, in a request for each."""
        names = [self._name(path) for path in paths]
        try:
            self._repeated(paths[0], lambda store: store.delete(names))
        except FileNotFoundError:
            at_once(self._delete_one, paths, AT_ONCE)

    def _delete_one(self, path: str) -> None:
        name = self._name(path)
        try:
            self._repeated(path, lambda store: store.delete(name))
        except FileNotFoundError:
            return

    def _listed(self, folder: str, after: str = "") -> Iterator[ObjectInfo]:
        if folder:
            self._name(folder)  # checks it
        return listed(Requests(self.bucket, self.access), self.folder, folder, after)

    def _repeated(self, path: str, step: Callable[[ObjectStore], T]) -> T:
        return Requests(self.bucket, self.access).repeated(f"{self.url}/{path}", step)


def _joined(pieces: Iterable[bytes], size_bytes: int) -> Iterator[bytes]:
    """Joins pieces to parts of at least `size_bytes`, except for the last."""
    part = bytearray()
    for piece in pieces:
        part += piece
        if len(part) >= size_bytes:
            yield bytes(part)
            part.clear()
    if part:
        yield bytes(part)
