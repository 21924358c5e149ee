"""Definition of a pipeline, from a TOML file or from Python. The modules parse it, check it and report every mistake at
once. A registry lists the windows, triggers and evictors that a definition may name.

Entry points:

    definition.py         a checked definition, loaded from TOML
    define.py             a definition in Python
    several.py            rules for definitions that run together

Tables of the TOML file:

    file.py               tables of the file, except source and windows
    source.py             tables `[source]` and `[source.dialect]`
    windows.py            tables `[window]`, `[window.trigger]` and `[window.evictor]`
    sections.py           pydantic models generated from the registry
    fields.py             checked field types: durations, paths, names
    durations.py          durations as text
    kept.py               retention as a number of batches or a span of time
    masters.py            allowed values of `spark.master`
    spark_types.py        Spark's names of column types
    locales.py            decimal mark of each locale

Windows:

    registry.py           windows, triggers and evictors by name
    kinds.py              form of a registry entry and its parameters
    spec.py               window model and plan that a definition stands for
    own_code.py           loading and shipping of the user's classes

SQL of the aggregates:

    aggregate_sql.py      parsing of `[aggregates]` and refusal of what cannot be merged
    expression_types.py   type errors in an aggregate's expression
    sql_functions.py      SQL functions that an expression may call
    sql_times.py          texts that would mean the time of the run

Rules:

    mistakes.py           mistakes of a definition, and the error that lists them
    rules.py              rules across several keys
    dialect_rules.py      rules across the keys of `[source.dialect]`
    refusals.py           combinations that the window model or the plan refuses
    explosion.py          bound on the results per event

Identity:

    formulas.py           changes of a definition that keep its stored state
    terms.py              terms of a batch that neither plan nor fingerprint holds
    uses.py               columns that a definition needs of its source

Text:

    commands.py           commands to paste into a shell
    instants.py           instants as TIMESTAMPs, milliseconds and text
    plurals.py            counted nouns
    reasons.py            check of an operator's reason
    visible.py            escaping of control characters
"""
