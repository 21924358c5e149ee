"""Publication of a batch: files become changes of tables, and the changes are fixed, judged and committed.

Readers see a change from its commit on.

Writing:

    publish.py          files that an engine wrote, as changes of tables
    roll_forward.py     judgement of all tables, then their commits
    start_versions.py   version of each table when a batch begins, and fencing

Other programs, and other versions of `tzdata`:

    foreign_changes.py  changes by other programs, and how to undo or keep them
    damage.py           checks for data files that are missing, cut or overwritten
    moved_edges.py      windows whose edges another version of the time zone has moved

Readers:

    key.py              a key as one string per key column, and its values in files and tables
    readers.py          tables at the versions that the newest commit names
    data_range.py       time range that published results cover
"""
