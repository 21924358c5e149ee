"""Tables of a pipeline: their columns, their files, and the ledger that records its batches. Everything a run must
remember lies here, as Delta tables and a few JSON files. The modules use delta-rs and Arrow; none starts an engine.

Columns and meaning:

    table.py               description of a table: columns, meaning of a row, invariants, partitions
    meaning.py             descriptions of all tables
    in_flight.py           descriptions of the tables of windows, slices and elements in flight
    turned_away.py         descriptions of quarantine, late events and seen event ids
    outside.py             descriptions of the tables that no batch publishes
    indexed.py             columns for which the log of a table keeps statistics

Delta tables:

    delta.py               tables of a pipeline, opened at a version as lists of files
    log.py                 transaction log of a table, entry by entry
    change.py              files that a commit adds and removes
    delta_commits.py       commits by compare-and-set, and the errors they raise
    data_files.py          Parquet files of small tables: describing, writing, reading
    small.py               appending to small tables, folding their files, reading the newest row
    footers.py             statistics of a Parquet file, for the log
    statistics.py          choice of files by their statistics
    datasets.py            a table at a version as an Arrow dataset
    row_groups.py          choice of row groups within a Parquet file
    lost.py                checks for data files that are missing, cut or overwritten
    disk.py                durable writes, and errors of a full or read-only disk

Ledger:

    ledger.py              control plane: claims, plans, commits and decisions
    ledger_rows.py         rows of the ledger, and the state that they add up to
    ledger_read.py         reading of the ledger: its end, or the rows of some kinds
    ledger_history.py      earlier batches and decisions
    ledger_compaction.py   merging of the large files of a long ledger
    lease.py               heartbeat of a claim while a run works, and its release
    owner.py               process behind a claim, and signs of its life
    decision.py            an operator's decision, as a batch of the ledger keeps it
    rerun.py               request of a rerun, and the checks of its range
    late.py                late bound of a batch

Publication:

    publish.py             files that an engine wrote, as changes of tables
    prepare.py             publication of a batch, fixed before the first table changes
    roll_forward.py        judging of all tables, then their commits
    standing.py            version of each table when a batch begins, and fencing
    foreign.py             changes by other programs, and how to undo or keep them

Readers:

    read.py                tables at the versions that the newest commit names
    data_range.py          range of time that published results cover

Maintenance:

    kept.py                batches whose cut stays readable
    maintained.py          record of each maintenance
    compaction.py          small files of a table merged into larger files
    checkpoints.py         checkpoints that keep a log short
    sweep.py               files that nothing needs any more

Records beside the batches:

    acknowledged.py        situations that an operator keeps quiet for a time
    erasures.py            erased keys, each with the rows removed
    last_error.py          error that the last command of a pipeline ended with
    migration.py           migration in progress, and the folder of its new tables
    notices.py             notices sent, and their delivery
    set_aside.py           source files that an operator has set aside
    verifications.py       outcome of each verification
"""
