"""Source of a pipeline: a folder of Parquet, JSON or CSV files, or a Delta table. The modules list its files, compare
them with those read before, check their columns and read their rows. Anything that cannot be read exactly is refused
with the file named.

Listing:

    listing.py            new files of a source, and changes of files read before
    found.py              a listed file, a Delta version, and the error of an unreadable source
    folder.py             files of a folder and its subfolders, and names left out
    marker.py             start of a listing where file names sort by time
    transfers.py          names of unfinished transfers
    known.py              files read before, matched with the files there now
    contents.py           identity of a file: its SHA-256 and folder values
    place.py              location of the source, as the ledger keeps it
    denied.py             files and folders that the user may not read
    uris.py               files by the URIs that engines use

Delta tables:

    delta_source.py       files that the versions of a Delta table added
    log_values.py         partition values in a Delta log
    removals.py           versions that remove files, and what becomes of their rows
    removal_words.py      messages about a removal, with the commands to go on
    rewritten.py          files rewritten from each other, as by compaction or an update
    table_types.py        column types of a Delta schema, and type widening

Columns and types:

    files.py              check of the columns in use against the definition
    column_types.py       types of a column that differ between files
    fitting.py            a column's type in a file against the type it is read as
    layout.py             types that the columns of Parquet files are read as
    absent.py             columns that a file lacks
    arrow_names.py        Arrow types parsed from their names
    folder_columns.py     columns from folder names that Spark by itself reads otherwise or not at all
    partition_values.py   values of partition columns, typed and checked

Rows:

    rows.py               rows of files as a DataFrame, each with its file and row number
    parquet_rows.py       rows of Parquet files
    text.py               rows of JSON and CSV files, and their headers
    packed.py             bytes of a text file, decompressed and in UTF-8
    lines.py              lines of JSON that Spark would misread
    surrogates.py         lone surrogates in JSON
    quotes.py             scan of a CSV file for multi-line records and open quotes
    quoted_values.py      tracking of quotes in CSV text
    spelling.py           exact parsing of numbers and times from text

Content of a batch:

    intake.py             row counts and event times of a batch's files
    footers.py            row counts and event times from Parquet footers alone
"""
