"""Source of a pipeline: a folder of Parquet, JSON or CSV files, or a Delta table. The modules list the files,
compare them with files read before, check their columns and read their rows. A source that cannot be read exactly is
refused; the error names the file.

Listing:

    listing.py       new files of a source, and changes of files read before
    listed.py        a listed file, a Delta version, and the error of an unreadable source
    folder.py        files of a folder and its subfolders, and omitted names
    marker.py        start of a listing where file names sort by time
    transfers.py     names of unfinished transfers
    read_before.py   files read before, matched with the files there now
    contents.py      identity of a file: its SHA-256 and folder values
    location.py      location of the source, as the ledger keeps it
    permissions.py   files and folders that the user may not read
    uris.py          files by the URIs that engines use

Parts:

    delta/           a Delta table as source
    columns/         columns and types of the files, against the definition
    text/            rows of JSON and CSV files

Rows:

    rows.py          rows of files as a DataFrame, each with its file and row number
    parquet_rows.py  rows of Parquet files

Content of a batch:

    intake.py        row counts and event times of a batch's files
    event_spans.py   spans of time of a step's events and slices, for windows of a calendar
    footers.py       row counts and event times from Parquet footers alone
"""
