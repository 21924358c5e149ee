"""Erasure of a key: from every table, from the files next to the tables, and from every later read of the source. The
source itself stays unchanged.

    forget.py         the whole erasure, as a batch
    tables.py         rows of the key in published tables, and their removal
    texts.py          values of the key in free text: check examples, pages, tracebacks
    records.py        traces outside the published tables: dry runs, verifications, notices, reasons, files
    source.py         rows of the key that the source still holds
    certificates.py   progress of each erasure
"""
