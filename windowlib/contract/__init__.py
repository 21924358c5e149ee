"""Names, columns, types and meaning of all tables of a pipeline. Readers depend on them: a change here changes the
published tables.

    table.py          description of a table: columns, meaning of a row, invariants, partitions
    types.py          Arrow types of columns
    tables.py         descriptions of all tables
    result_tables.py  descriptions of results and of their changes, and the columns that windowlib computes
    state_tables.py   descriptions of the tables of windows, slices and elements in flight, and their partial aggregates
    intake_tables.py  descriptions of quarantine, late events and seen event ids
    record_tables.py  descriptions of the tables that no batch publishes
    change.py         kinds of change of a row of results
"""
