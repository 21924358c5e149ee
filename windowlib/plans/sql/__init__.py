"""Expressions in SQL: parsed, typed, and rewritten for an engine with other number limits.

parser.py   parsing of Spark SQL
kinds.py    SQL types by Spark's names
types.py    type of an expression
guarded.py  expressions rewritten for an engine with other number limits
"""
