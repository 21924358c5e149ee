"""Figures of the result columns among the rows that a batch adds or changes.

null_columns.py     columns that are null in most new results
column_counts.py    failed tests and distinct values of all columns, part by part
tested_columns.py   rows that fail the tests of the definition
column_values.py    distinct and repeated values of a column
"""
