"""Unreadable answers of Sail."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pyspark.sql.connect.proto as proto
import pytest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

from windowlib.engines.connect import UNREADABLE
from windowlib.engines.sail_requests import channel

GARBLED, GOOD = b"\x0a\xff\xff\xff\xff", proto.AnalyzePlanResponse(session_id="one").SerializeToString()


class Answers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Server that answers each request with the next of some bytes."""

    def __init__(self, *answers: bytes) -> None:
        self.left = [*answers]

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.left.pop(0))


@pytest.fixture
def asked() -> Iterator[tuple[Answers, SparkConnectServiceStub]]:
    """Server, and a client with the interceptor that runs use."""
    answers, server = Answers(), grpc.server(ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((answers,))
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield answers, SparkConnectServiceStub(channel(f"sc://localhost:{port}").toChannel())
    server.stop(None)


def test_a_request_for_a_schema_is_repeated(asked: tuple[Answers, SparkConnectServiceStub]) -> None:
    answers, stub = asked
    answers.left = [GARBLED, GOOD]
    assert stub.AnalyzePlan(proto.AnalyzePlanRequest()).session_id == "one"
    assert answers.left == []


def test_a_request_for_a_schema_is_repeated_once(asked: tuple[Answers, SparkConnectServiceStub]) -> None:
    answers, stub = asked
    answers.left = [GARBLED, GARBLED, GOOD]
    with pytest.raises(grpc.RpcError, match=UNREADABLE):
        stub.AnalyzePlan(proto.AnalyzePlanRequest())
    assert answers.left == [GOOD]


def test_a_request_that_executes_a_plan_is_not_repeated(asked: tuple[Answers, SparkConnectServiceStub]) -> None:
    answers, stub = asked
    answers.left = [GARBLED, GOOD]
    with pytest.raises(grpc.RpcError, match=UNREADABLE):
        stub.Config(proto.ConfigRequest())
    assert answers.left == [GOOD]
