"""Requests to Sail, with trees instead of SQL strings. Sail builds a parser for each string and never frees it.

Plans contain many SQL expressions. Each request to Sail carries the whole plan, and a batch makes a dozen requests. The
parsers of one batch of sessions took 10 MB, which stayed until the process ended. So this module replaces each SQL
expression in a request by the tree that Sail's own parser would build (`windowlib.engines.sail_sql`). It also replaces
the type in each cast, which saves less.

A new server (`windowlib.engines.sail`) does not free the parsers. Measured on 2026-11-24, with two processes in turns:
after sixty batches of one event, the process without trees held 807 MB, and the process with trees 410 MB. The process
without trees used 5 % more processor time.

A schema is an SQL string too, but has no tree. Eleven requests of a batch ask only for the schema of a plan. Such a
request reads no file: an empty relation with the schema replaces the files. In other requests SQL replaces the JSON in
which PySpark states the schema. Sail tries SQL first, and only failed attempts leave memory behind.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import grpc
import pyspark.sql.connect.proto as proto
from google.protobuf.message import Message
from pyspark.sql.connect.client import DefaultChannelBuilder

from windowlib.engines.connect import UNREADABLE
from windowlib.engines.sail_sql import tree_of, type_of
from windowlib.plans.functions import quoted

# SQL names of types, by PySpark's names in JSON.
SQL_TYPES = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"},
    **{name: name for name in ("boolean", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz")},
}


def with_trees(request: Message) -> Message:
    """Replaces SQL strings in a request by trees, and file reads in a schema request. Returns the same request."""
    _replace(request, reads=not _asks_for_schema(request))
    return request


def _asks_for_schema(request: Message) -> bool:
    return isinstance(request, proto.AnalyzePlanRequest) and request.HasField("schema")


def _replace(message: Message, *, reads: bool) -> None:
    if not reads and isinstance(message, proto.Relation) and message.read.data_source.schema.startswith("{"):
        message.project.CopyFrom(_no_rows(message.read.data_source.schema))
        return
    if isinstance(message, proto.Read.DataSource | proto.LocalRelation) and message.schema.startswith("{"):
        message.schema = _in_sql(message.schema)
    if isinstance(message, proto.Expression.Cast) and (kind := type_of(message.type_str)):
        message.type.CopyFrom(kind)
    if isinstance(message, proto.Expression) and message.WhichOneof("expr_type") == "expression_string":
        tree = tree_of(message.expression_string.expression)
        if tree is not None:
            message.ParseFromString(tree)
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if isinstance(value, Message) else value:
                if isinstance(part, Message):
                    _replace(part, reads=reads)


@lru_cache(maxsize=512)
def _no_rows(schema: str) -> Message:
    """Empty relation with a schema, given as JSON: a projection of typed nulls over an empty range."""
    from pyspark.sql.connect.types import pyspark_types_to_proto_types
    from pyspark.sql.types import StructType

    rows = proto.Project()
    rows.input.range.end = 0
    rows.input.range.step = 1
    for field in StructType.fromJson(json.loads(schema)):
        alias = rows.expressions.add().alias
        alias.name.append(field.name)
        alias.expr.cast.type.CopyFrom(pyspark_types_to_proto_types(field.dataType))
        alias.expr.cast.expr.literal.null.null.SetInParent()
    return rows


@lru_cache(maxsize=512)
def _in_sql(schema: str) -> str:
    """Converts a schema from JSON to an SQL type. Returns it unchanged if SQL cannot express it.

    >>> _in_sql('{"type":"struct","fields":[{"name":"a b","type":"long","nullable":true,"metadata":{}}]}')
    'struct<`a b`:bigint>'
    """
    try:
        return _type_in_sql(json.loads(schema))
    except LookupError:
        return schema


def _type_in_sql(kind: Any) -> str:
    """Converts a type from JSON to SQL.

    Raises LookupError if SQL cannot express the type: values that are never null, metadata, other types.
    """
    match kind:
        case str() if kind.startswith("decimal("):
            return kind
        case str():
            return SQL_TYPES[kind]
        case {"type": "struct", "fields": fields} if all(f["nullable"] and not f["metadata"] for f in fields):
            members = (f"{quoted(field['name'])}:{_type_in_sql(field['type'])}" for field in fields)
            return f"struct<{','.join(members)}>"
        case {"type": "array", "elementType": element, "containsNull": True}:
            return f"array<{_type_in_sql(element)}>"
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}:
            return f"map<{_type_in_sql(key)},{_type_in_sql(value)}>"
    raise LookupError(kind)


class _Trees(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Puts trees into every request.

    If the answer to a request for analysis is unreadable, the request is repeated, because it computes nothing. If the
    answer of an executed plan is unreadable, the caller repeats the batch (`windowlib.engines.connect.is_engine_lost`).
    """

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        answer = continuation(details, with_trees(request))
        if isinstance(request, proto.AnalyzePlanRequest) and answer.details() == UNREADABLE:
            answer = continuation(details, request)
        return answer

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(details, with_trees(request))


def channel(address: str) -> DefaultChannelBuilder:
    """Builds the channel to Sail at `address`, which puts trees into its requests."""
    builder = DefaultChannelBuilder(address)
    # A token in the environment belongs to another server, and would need TLS.
    builder.set(DefaultChannelBuilder.PARAM_TOKEN, None)
    builder.add_interceptor(_Trees())
    return builder
