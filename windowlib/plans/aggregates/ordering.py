"""Normal form of values that every engine orders alike."""

from __future__ import annotations

from windowlib.plans.sql.kinds import fields_of


def ordered_as_spark(argument: str, kind: str | None) -> str:
    """SQL that normalizes the floating-point numbers of a value, also inside structs and arrays.

    Every NaN becomes the same NaN, and -0.0 becomes 0.0.

    >>> ordered_as_spark("x", "int"), ordered_as_spark("x", "struct<a:int,b:string>")
    ('x', 'x')
    """
    if kind is None or not ("float" in kind or "double" in kind):
        return argument
    if kind.startswith("array<"):
        element = f"e{argument.count('->')}"
        return f"transform({argument}, {element} -> {ordered_as_spark(element, kind[len('array<') : -1])})"
    if fields := fields_of(kind):
        parts = (f"'{name}', {ordered_as_spark(f'({argument}).`{name}`', field)}" for name, field in fields.items())
        return f"if(({argument}) is null, null, named_struct({', '.join(parts)}))"
    if kind not in ("float", "double"):
        return argument
    nan, zero = f"{kind}('NaN')", f"cast(0 as {kind})"
    return f"case when isnan({argument}) then {nan} when {argument} = {zero} then {zero} else {argument} end"
