"""Airflow provider: operators, pages and a plugin for pipelines. Tasks run `windowlib` commands as their own processes.
Parsing a DAG file imports no Spark.

DAGs and tasks:

    pipelines.py         pipelines of a folder, as Airflow schedules them
    operators.py         tasks of a pipeline: plan, advance, report
    rerun_operators.py   tasks of the DAG `rerun_windows`
    rerun_form.py        form of the DAG `rerun_windows`
    job.py               task that runs a command as its own process
    processes.py         a command in its own process group
    commands.py          command lines of the tasks
    connections/         credentials of object stores from Airflow's connections
    pools.py             Airflow pools for runs
    outcome.py           return value of a task in a line
    outlets.py           asset event of the results
    statistics.py        counters for Airflow's own metrics
    sentences.py         failure of a command as a log line
    dag_docs.py          documentation of a DAG in Markdown

Decisions:

    decide.py            task that asks about a refused batch, and the tasks after it
    question.py          text of the question
    asking.py            open question about a batch, and its link
    approval.py          users who may approve, and the fields of an answer
    applied.py           outcome of an applied preview, from the ledger

Notices and lineage:

    late_runs.py         notices about runs that miss their deadline
    notifiers.py         delivery by Airflow's notifiers
    lineage.py           OpenLineage events of a task

Pages:

    plugin.py            plugin that serves the pages to logged-in users
    web/                 actions on the pages, with the permissions of Airflow
    live_pages.py        pages rendered on request, and their cache
    addresses.py         URLs of the pages
"""
