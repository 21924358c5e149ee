"""Rows of JSON and CSV files. Lines that an engine would misread are found first.

    rows.py           rows of JSON and CSV files, and their headers
    decompression.py  content of a text file, decompressed and decoded

JSON:

    json_lines.py     lines of JSON that Spark would misread
    surrogates.py     lone surrogates in JSON

CSV:

    quotes.py         scan of a CSV file for multi-line records and open quotes
    quoted_values.py  tracking of quotes in CSV text
    spelling.py       exact parsing of numbers and times from text
"""
