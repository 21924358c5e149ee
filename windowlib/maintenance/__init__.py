"""Maintenance of the tables: merges small files, deletes old files, shortens the logs.

maintain.py           operation `maintain`
candidates.py         files that maintenance may merge or delete
compaction.py         small files of a table merged into larger files
ledger_compaction.py  merging of the large files of a long ledger
sweep.py              unneeded files, and their deletion
"""
