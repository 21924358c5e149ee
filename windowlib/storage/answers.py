"""Errors of obstore and delta-rs as one sentence each: which place, what was expected, what to do.

Their own text holds addresses with signatures and bodies of answers, so only the status, the error code and the
region are taken from it.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from windowlib.model.errors import TryAgain, WindowError
from windowlib.storage.bucket import AZURE, AZURE_HOST, CLOUDS, S3, BucketAddress
from windowlib.storage.credentials import AccessDenied, refused

T = TypeVar("T")
NO_BUCKET = {"NoSuchBucket", "ContainerNotFound", "FilesystemNotFound"}
EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "InvalidToken", "InvalidAuthenticationInfo"}
REPLACED = {"AuthenticationFailed", "InvalidAccessKeyId", "SignatureDoesNotMatch"}  # maybe by other keys
WRONG_REGION = {"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"}
WRONG_CLOCK = {"RequestTimeTooSkewed", "RequestExpired"}
DENIED = (401, 403)
BUSY = (408, 409, 412, 429)
STATUS = re.compile(r"status code:? (\d{3})|\(code: (\d{3})\)")
DECORATION = re.compile(r"\x1b\[\d*m|↳")  # of delta-rs, which shows causes as a tree
CODE = re.compile(r"<Code>(\w{1,80})</Code>")
REGION = re.compile(r"<Region>([a-z0-9-]{1,40})</Region>")


class StorageFailed(TryAgain, OSError):
    """An object store did not do what was requested. The message is one sentence.

    It has an `errno` like an error of a disk: no stored data is damaged.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = errno.EIO


class UnusableBucket(WindowError, OSError):
    """An address or a setting names no usable bucket. A retry does not help. The message is one sentence."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.errno = errno.ENXIO


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer of a store that is no success. `status` is None if there was no answer."""

    status: int | None
    code: str
    region: str
    kind: str  # class of obstore's error

    @property
    def is_missing(self) -> bool:
        """Tests if the object does not exist, although its bucket does."""
        return (self.status == 404 or self.kind == "FileNotFoundError") and self.code not in NO_BUCKET

    @property
    def may_be_expired(self) -> bool:
        """Tests if other credentials may be accepted. The answer to a HEAD has no code."""
        if self.status in (400, 403):
            return self.code in EXPIRED or self.code in REPLACED or self.code == ""
        return self.status == 401 or self.kind == "UnauthenticatedError"

    @property
    def may_pass(self) -> bool:
        """Tests if the same request may succeed later, or may have succeeded already."""
        if self.is_wrong_region or self.kind in ("ValueError", "InvalidPathError", "UnauthenticatedError"):
            return False
        return self.status is None or self.status in BUSY or self.status >= 500

    @property
    def is_wrong_region(self) -> bool:
        """Tests if the bucket is in another region."""
        return self.code in WRONG_REGION or self.kind == "redirected"

    @property
    def answer(self) -> str:
        """The answer in short, such as `503 SlowDown`."""
        return " ".join(filter(None, (str(self.status or ""), self.code))) or "no answer"


def answer_of(error: Exception) -> Refusal:
    """Reads status, code and region from an error of obstore or delta-rs.

    >>> answer_of(OSError("status code: 503 Service Unavailable: <Code>SlowDown</Code>")).answer
    '503 SlowDown'
    """
    text = " ".join(DECORATION.sub(" ", str(error)).split())
    status, code, region = STATUS.search(text), CODE.search(text), REGION.search(text)
    kind = "redirected" if "incorrectly configured region" in text else type(error).__name__
    number = int(status[1] or status[2]) if status else None
    return Refusal(number, code[1] if code else "", region[1] if region else "", kind)


def answers_named(address: str, step: Callable[[], T]) -> T:
    """Result of a step of delta-rs at `address`. Raises the error that a request of windowlib would have.

    That error is not linked to the one of delta-rs, whose text may hold a signature.
    """
    scheme, _, rest = address.partition("://")
    try:
        return step()
    except OSError as error:
        if error.errno or scheme not in CLOUDS:
            raise
        refusal = answer_of(error)
    name, _, host = rest.partition("/")[0].partition("@")
    raise error_about(refusal, BucketAddress(scheme, name, host.removesuffix(AZURE_HOST)), address)


def error_about(refusal: Refusal, bucket: BucketAddress, place: str) -> OSError:
    """Error for a caller: FileNotFoundError, `AccessDenied`, `UnusableBucket` or `StorageFailed`."""
    if refusal.code in NO_BUCKET:
        return UnusableBucket(
            f"{bucket} does not exist: expected a bucket or container; create it, or correct the address"
        )
    if refusal.is_missing:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
    if refusal.is_wrong_region:
        return UnusableBucket(_other_region(refusal, bucket))
    if refusal.code in WRONG_CLOCK:
        return StorageFailed(
            f"{bucket} refuses the time of this machine's clock: expected the right time; set the clock"
        )
    if refusal.status in DENIED or refusal.code in EXPIRED or refusal.kind == "UnauthenticatedError":
        return _denied(refusal, bucket, place)
    if refusal.kind in ("ValueError", "InvalidPathError"):
        return StorageFailed(f"{place!r} cannot be stored: expected names without empty, `.` or `..` parts; rename it")
    return _no_success(refusal, place)


def _other_region(refusal: Refusal, bucket: BucketAddress) -> str:
    if bucket.cloud != S3:
        return f"{bucket} is at another address than the one that was asked: correct the endpoint"
    region = refusal.region or "REGION"
    where = refusal.region or "another region"
    return f"{bucket} is in {where}, not in the region that was asked: set AWS_REGION={region}"


def _denied(refusal: Refusal, bucket: BucketAddress, place: str) -> AccessDenied:
    if refusal.may_be_expired:
        return refused(f"{bucket} refuses the credentials ({refusal.answer})", bucket)
    role = (
        "the role Storage Blob Data Contributor" if bucket.cloud == AZURE else "rights to list, read, write and delete"
    )
    return AccessDenied(
        f"{place}: access is denied ({refusal.answer}): expected credentials with {role}; grant it, or use others"
    )


def _no_success(refusal: Refusal, place: str) -> OSError:
    if refusal.status is None:
        return StorageFailed(
            f"{place}: the storage did not answer, also when asked again: expected a reachable endpoint; check the"
            " network and the address, then try again"
        )
    return StorageFailed(
        f"{place}: the storage answered {refusal.answer}, also when asked again: expected success; try again later"
    )
