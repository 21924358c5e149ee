"""Tables of the TOML file, as pydantic models.

Tables:

    file.py         tables of the file, except source, windows and checks
    checks.py       table `[checks]` with the short tests of result columns
    source.py       tables `[source]` and `[source.dialect]`
    windows.py      tables `[window]`, `[window.trigger]` and `[window.evictor]`
    sections.py     pydantic models generated from the registry

Values:

    fields.py        checked field types: durations, paths, names
    durations.py     durations as strings
    calendars.py     calendar lengths, time zones, starts of days
    column_tests.py  short tests of result columns
    patterns.py      regular expressions that all engines read alike
    retention.py     retention as a number of batches or a span of time
    masters.py       allowed values of `spark.master`
    spark_types.py   column types of Spark by name
    locales.py       decimal mark of each locale
"""
