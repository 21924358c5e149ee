"""Command line `windowlib`: a module per group of commands, and the modules that render reports. A command calls a
function of another folder and prints its report as text or JSON. Modules are imported only when their command runs.

Commands:

    main.py          command line, and the table of its commands
    run.py           commands `run` and `plan`
    look.py          commands `read`, `status`, `explain-plan` and `report`
    explain.py       command `explain`
    checks.py        command `checks`
    verify.py        command `verify`
    late.py          commands `late list`, `late what-if` and `late readmit`
    rerun.py         command `rerun`
    decide.py        commands `approve`, `abandon` and `accept-clock`
    operate.py       commands `restore`, `adopt`, `rollback` and `advance-watermark`
    set_aside.py     command `set-aside`
    maintain.py      command `maintain`
    migrate.py       command `migrate`
    forget.py        command `forget`
    acknowledge.py   command `acknowledge`
    test.py          command `test`
    try_out.py       commands `demo` and `replay`
    setup.py         command `setup`

Options and output:

    options.py       options shared by several commands
    several.py       loading of several definitions, each with its own errors
    display.py       lines and tables on the screen
    outcomes.py      outcome of a command, as a sentence or JSON
    json_text.py     values as JSON
    exports.py       tables as CSV, JSON or Parquet files
    output.py        standard output and error, with failed writes handled
    progress.py      progress of a command, at the bottom of a terminal
    notifying.py     notices and metrics at the end of a command
    nothing_new.py   message of a run without new files
    unusable.py      advice for a batch without usable rows
"""
