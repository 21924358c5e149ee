"""Commands of `windowlib`, one module per group.

Running:

    run.py          command `run`
    plan.py         command `plan`
    rerun.py        command `rerun`
    maintain.py     command `maintain`
    migrate.py      command `migrate`
    move.py         command `move`

Looking:

    look.py         commands `read`, `status`, `explain-plan` and `report`
    changes.py      command `changes`
    explain.py      command `explain`
    checks.py       command `checks`
    verify.py       command `verify`
    late.py         commands `late list`, `late what-if` and `late readmit`

Deciding:

    decide.py       commands `approve`, `abandon` and `accept-clock`
    operate.py      commands `restore`, `adopt`, `rollback` and `advance-watermark`
    set_aside.py    command `set-aside`
    acknowledge.py  command `acknowledge`
    forget.py       command `forget`

Trying:

    test.py         command `test`
    try_out.py      commands `demo` and `replay`
    setup.py        command `setup`
"""
