"""An HTTP proxy in front of a server, which makes chosen requests go wrong and records every request.

Each connection has a thread. A request without a rule is passed on unchanged, and so is the answer. Two differences
between the test servers and the real stores are removed on the way: Azurite ignores `startFrom`, and S3Proxy refuses
session tokens.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from urllib.parse import parse_qs, urlsplit

HOP = {"connection", "transfer-encoding", "content-length", "keep-alive", "expect"}
TOKEN = "x-amz-security-token"
WITHOUT_BODY = (204, 304)


@dataclass(frozen=True)
class Request:
    """A request as the client sent it. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def path(self) -> str:
        return urlsplit(self.target).path


@dataclass(frozen=True)
class Answer:
    """An answer of the server."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = field(repr=False)
    length: int | None = None  # of a body that is not sent, as for HEAD

    def sent(self) -> bytes:
        """The answer as it goes over the wire."""
        reason = http.client.responses.get(self.status, "Unknown")
        lines = [f"HTTP/1.1 {self.status} {reason}"]
        lines += [f"{name}: {value}" for name, value in self.headers if name.lower() not in HOP]
        if self.status not in WITHOUT_BODY:
            lines.append(f"Content-Length: {len(self.body) if self.length is None else self.length}")
        return "\r\n".join([*lines, "", ""]).encode("latin1") + self.body


@dataclass(frozen=True)
class Exchange:
    """A request that a fault handles: it may pass it on, answer it, or break the connection."""

    request: Request
    forward: Callable[[], Answer]
    connection: socket.socket

    def send(self, content: bytes) -> None:
        self.connection.sendall(content)

    def close(self) -> None:
        """Ends the connection in order."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """Breaks the connection: the client gets `connection reset by peer`."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())  # at once, although files of the handler still hold the socket


Fault = Callable[[Exchange], None]


def lost_answer(exchange: Exchange) -> None:
    """The server carries out the request, and its answer is lost."""
    exchange.forward()
    exchange.close()


def lost_request(exchange: Exchange) -> None:
    """The request never reaches the server."""
    exchange.close()


def repeated(exchange: Exchange) -> None:
    """The request reaches the server twice. The client gets the second answer."""
    exchange.forward()
    exchange.send(exchange.forward().sent())


def answered(status: int, code: str, *headers: tuple[str, str]) -> Fault:
    """The server refuses the request with this status and this error code."""

    def answer(exchange: Exchange) -> None:
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>planted</Message></Error>".encode()
        is_head = exchange.request.method == "HEAD"
        refusal = Answer(status, [*headers, ("x-ms-error-code", code)], b"" if is_head else body)
        exchange.send(refusal.sent())

    return answer


def refused_after_success(status: int, code: str) -> Fault:
    """The server carries out the request, and answers that it did not."""

    def answer(exchange: Exchange) -> None:
        exchange.forward()
        answered(status, code)(exchange)

    return answer


def slow(seconds: float) -> Fault:
    """The answer takes this much longer."""

    def answer(exchange: Exchange) -> None:
        time.sleep(seconds)
        exchange.send(exchange.forward().sent())

    return answer


def reset_in_body(exchange: Exchange) -> None:
    """The connection breaks in the middle of the body of the answer."""
    content = exchange.forward()
    exchange.send(content.sent()[: -max(1, len(content.body) // 2)])
    time.sleep(0.05)  # what has been sent arrives first
    exchange.reset()


def truncated(exchange: Exchange) -> None:
    """The connection ends in order, but half of the body of the answer is missing."""
    content = exchange.forward()
    exchange.send(content.sent()[: -max(1, len(content.body) // 2)])
    exchange.close()


@dataclass
class Rule:
    """A fault for the requests whose method and path match, at most `times` times."""

    fault: Fault
    method: str = ""
    path: str = ""
    times: int | None = 1
    chosen: Callable[[Request], bool] = lambda _: True
    hits: int = 0

    def takes(self, request: Request) -> bool:
        """Tests if the rule applies to this request, and counts it."""
        if self.times is not None and self.hits >= self.times:
            return False
        if self.method not in ("", request.method) or self.path not in request.target or not self.chosen(request):
            return False
        self.hits += 1
        return True


@dataclass
class FaultProxy:
    """A running proxy: its port, the requests so far, and the rules, of which the first that matches counts."""

    port: int
    upstream: int
    latency: float = 0.0
    rules: list[Rule] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def plan(self, fault: Fault, method: str = "", path: str = "", times: int | None = 1) -> Rule:
        """Makes the next matching requests go wrong."""
        rule = Rule(fault, method, path, times)
        self.rules.append(rule)
        return rule

    def rule_for(self, request: Request) -> Rule | None:
        """The rule for a request, which is recorded."""
        with self.lock:
            self.requests.append(request)
            return next((rule for rule in self.rules if rule.takes(request)), None)


@contextmanager
def fault_proxy(upstream: int) -> Iterator[FaultProxy]:
    """A proxy in front of the server on this port of this machine."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, ValueError):  # the client, or a fault, has ended the connection
                while (request := _request_from(self)) is not None:
                    _serve(proxy, request, self.connection)

    class Server(ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            proxy.rules.append(Rule(answered(500, "ProxyFailed"), times=None))  # seen by the test, which then fails

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy = FaultProxy(server.server_address[1], upstream)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


def _serve(proxy: FaultProxy, request: Request, connection: socket.socket) -> None:
    def forward() -> Answer:
        return _answer_of(proxy.upstream, request)

    if proxy.latency:
        time.sleep(proxy.latency)
    rule = proxy.rule_for(request)
    if rule is None:
        connection.sendall(forward().sent())
    else:
        rule.fault(Exchange(request, forward, connection))


def _request_from(handler: StreamRequestHandler) -> Request | None:
    line = handler.rfile.readline().decode("latin1").strip()
    if not line:
        return None
    method, target, _ = line.split(" ", 2)
    headers = dict(_headers(handler))
    if headers.get("expect", "").lower() == "100-continue":
        handler.connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    return Request(method, target, headers, handler.rfile.read(int(headers.get("content-length", "0"))))


def _headers(handler: StreamRequestHandler) -> Iterator[tuple[str, str]]:
    while line := handler.rfile.readline().decode("latin1").strip():
        name, _, value = line.partition(":")
        yield name.strip().lower(), value.strip()


def _answer_of(port: int, request: Request) -> Answer:
    upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        upstream.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            if name not in {TOKEN, "connection", "expect"}:
                upstream.putheader(name, value)
        upstream.endheaders(request.body or None)
        response = upstream.getresponse()
        length = response.getheader("content-length") if request.method == "HEAD" else None
        answer = Answer(
            response.status, response.getheaders(), response.read(), None if length is None else int(length)
        )
    finally:
        upstream.close()
    return _after_start(answer, request)


def _after_start(answer: Answer, request: Request) -> Answer:
    """A listing of Azurite without the names before `startFrom`, which it ignores."""
    start = parse_qs(urlsplit(request.target).query).get("startFrom")
    if not start or answer.status != 200:
        return answer

    def kept(blob: re.Match[bytes]) -> bytes:
        name = re.search(rb"<Name>(.*?)</Name>", blob[0])
        return blob[0] if name and name[1].decode() >= start[0] else b""

    return Answer(200, answer.headers, re.sub(rb"<Blob>.*?</Blob>", kept, answer.body, flags=re.DOTALL))
