"""Command line `windowlib`. A command calls a function of another folder and prints its report as text or JSON. A
module is imported only when one of its commands runs.

    main.py         command line, and the table of its commands
    commands/       a module per group of commands

Options and output:

    options.py      options shared by several commands
    several.py      loading of several definitions, each with its own errors
    outcomes.py     printing of a report, as text or JSON
    decided.py      printing of a decision
    batch_text.py   text of a batch
    status_text.py  text of a status, and of an explained plan
    display.py      screen, tables and rows
    exports.py      tables as CSV, JSON or Parquet files
    output.py       standard output and error, with handling of failed writes
    progress.py     progress of a command, at the bottom of a terminal
    notifying.py    notices and metrics at the end of a command
    nothing_new.py  message of a run without new input
    unusable.py     advice for a batch without usable rows

Process:

    exits.py        exit codes and error messages of a command
    tracebacks.py   tracebacks of unforeseen errors
    interrupts.py   Ctrl-C before and while a command runs
"""
