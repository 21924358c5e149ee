"""Definition of a pipeline, from a TOML file or from Python.

The modules parse and check a definition and report every mistake at once. A registry lists the windows, triggers and
evictors that a definition may name.

Entry points:

    definition.py     a checked definition, loaded from TOML
    define.py         a definition in Python
    warehouse.py      storage of a pipeline's tables
    several.py        rules for definitions that run together

Parts:

    toml/             tables of the TOML file, as pydantic models
    sql/              SQL of the aggregates

Windows:

    registry.py       windows, triggers and evictors by name
    calendar_windows.py  windows of a calendar, as forms of other windows
    kinds.py          form of a registry entry and its parameters
    spec.py           objects of the window model, and plan, for a definition
    user_classes.py   loading and shipping of the user's classes

Rules:

    mistakes.py       mistakes of a definition, and the error that lists them
    rules.py          rules across several keys
    dialect_rules.py  rules across the keys of `[source.dialect]`
    page_rules.py     rules of `[pages]` that concern other keys
    check_rules.py    rules of `[checks.columns]` that concern other keys
    refusals.py       combinations that the window model or the plan refuses
    explosion.py      bound on the results per event

Identity:

    formulas.py       changes of a definition that keep its stored state
    terms.py          settings that decide the outcome of a batch, besides plan and fingerprint
    uses.py           columns that a definition needs of its source

Text:

    commands.py       commands to paste into a shell
    instants.py       instants as TIMESTAMPs, milliseconds and text
    json_text.py      reports and values as JSON
    plurals.py        counted nouns
    reasons.py        check of an operator's reason
    visible.py        escaping of control characters
"""
