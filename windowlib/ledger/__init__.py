"""Ledger of a pipeline: the Delta table that records claims, plans, commits and decisions, and the records beside it.

Only the holder of the newest claim may change the pipeline.

Ledger:

    ledger.py            control plane: claims, plans, commits and decisions
    rows.py              rows of the ledger, and the state that they add up to
    entries.py           rows of one commit, and the state after them
    reading.py           reading of the ledger: its newest rows, or all rows of given kinds
    history.py           earlier batches and decisions
    lease.py             heartbeat of a claim while a run works, and its release
    owner.py             process behind a claim, and test if it is still at work

Entries:

    prepare.py           publication of a batch, fixed before the first table changes
    decision.py          an operator's decision, as a row of the ledger stores it
    rerun_request.py     request of a rerun, and the checks of its range
    late_bound.py        late bound of a batch
    migration.py         migration in progress, and the folder of its new tables
    moves.py             move of the tables to another storage: its row, and the mark of the new place

Records beside the batches:

    acknowledgements.py  situations that an operator has silenced until a given time
    erasures.py          erased keys, each with the number of removed rows
    last_error.py        last error of a pipeline's commands
    maintenances.py      record of each maintenance
    notices.py           notices sent, and their delivery
    retained_batches.py  batches whose cut stays readable
    set_aside_files.py   source files that an operator has set aside
    verifications.py     outcome of each verification
"""
