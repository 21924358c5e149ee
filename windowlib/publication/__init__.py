"""Publication of a batch: files become changes of tables, the changes are fixed, judged and committed, and readers see
them from the commit entry on.

Writing:

    publish.py          files that an engine wrote, as changes of tables
    roll_forward.py     judging of all tables, then their commits
    start_versions.py   version of each table when a batch begins, and fencing

Other programs:

    foreign_changes.py  changes by other programs, and how to undo or keep them
    damage.py           checks for data files that are missing, cut or overwritten

Readers:

    key.py              a key by one text for each key column, and its values in files and tables
    readers.py          tables at the versions that the newest commit names
    data_range.py       range of time that published results cover
"""
