"""Expressions in SQL, given to Sail as trees: it builds a parser for each text that it reads, and never gives it back.

Plans say much of what they compute in SQL. Each request to Sail carries the whole plan, and a batch makes a dozen: the
parsers of one batch of sessions took 10 MB, which stayed until the process ended. So before a request leaves, each
text in it becomes the tree that Sail's own parser makes of it (`windowlib.engines.sail_sql`). So does the type of each
cast, which costs less.

A new server (`windowlib.engines.sail`) does not give the parsers back. Measured on 2026-11-24, two processes in turns:
after sixty batches of one event one without the trees held 807 MB instead of 410, and used 5 % more processor time.

The schema that rows are read or given with is such a text, too, and there is no tree for it. Where only a plan's own
schema is asked for, which a batch does eleven times, no file needs to be read: rows of that schema, of which there are
none, take the place of the files. Elsewhere it is said in SQL, not in PySpark's JSON: SQL is what Sail tries first, and
what it keeps is of attempts that fail.
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

# PySpark's names of types in JSON -> those of SQL.
SQL_TYPES = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"},
    **{name: name for name in ("boolean", "float", "double", "string", "binary", "date", "timestamp", "timestamp_ntz")},
}


def trees(request: Message) -> Message:
    """The request itself, with trees in the place of texts; without files where it asks for a schema."""
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
            for one in [value] if isinstance(value, Message) else value:
                if isinstance(one, Message):
                    _replace(one, reads=reads)


@lru_cache(maxsize=512)
def _no_rows(schema: str) -> Message:
    """No rows of a schema that is given as JSON: nulls of the types, over a range of nothing."""
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
    """A schema that is given as JSON, as a type in SQL; as it is, where SQL does not say all of it.

    >>> _in_sql('{"type":"struct","fields":[{"name":"a b","type":"long","nullable":true,"metadata":{}}]}')
    'struct<`a b`:bigint>'
    """
    try:
        return _type_in_sql(json.loads(schema))
    except LookupError:
        return schema


def _type_in_sql(kind: Any) -> str:
    """Raises LookupError where it has what SQL does not say: values that are never null, metadata, other types."""
    match kind:
        case str() if kind.startswith("decimal("):
            return kind
        case str():
            return SQL_TYPES[kind]
        case {"type": "struct", "fields": fields} if all(one["nullable"] and not one["metadata"] for one in fields):
            in_sql = (f"{quoted(one['name'])}:{_type_in_sql(one['type'])}" for one in fields)
            return f"struct<{','.join(in_sql)}>"
        case {"type": "array", "elementType": element, "containsNull": True}:
            return f"array<{_type_in_sql(element)}>"
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}:
            return f"map<{_type_in_sql(key)},{_type_in_sql(value)}>"
    raise LookupError(kind)


class _Trees(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Translates what every request asks.

    An answer to a question about a plan that cannot be read is asked for again: nothing was done for it. Where one to a
    plan that is executed cannot, the batch is done again (`windowlib.engines.connect.lost`).
    """

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        answer = continuation(details, trees(request))
        if isinstance(request, proto.AnalyzePlanRequest) and answer.details() == UNREADABLE:
            answer = continuation(details, request)
        return answer

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        return continuation(details, trees(request))


def channel(address: str) -> DefaultChannelBuilder:
    """A way to Sail at `address` on which requests are translated."""
    made = DefaultChannelBuilder(address)
    made.set(DefaultChannelBuilder.PARAM_TOKEN, None)  # a token in the environment is for another server, and needs TLS
    made.add_interceptor(_Trees())
    return made
