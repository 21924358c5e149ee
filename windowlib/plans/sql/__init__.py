"""Parsing and typing of SQL expressions.

parser.py   parsing of Spark SQL
kinds.py    SQL types by Spark's names
types.py    type of an expression
"""
