"""Columns of source files: check of their names and types in each file against the definition.

check.py             check of the columns in use against the definition
column_types.py      types of a column that differ between files
fitting.py           a column's type in a file against the type it is read as
layout.py            types that the columns of Parquet files are read as
missing.py           columns that a file lacks
arrow_names.py       Arrow types parsed from their names
folder_columns.py    columns from folder names that Spark misreads or does not find
partition_values.py  values of partition columns, typed and checked
"""
