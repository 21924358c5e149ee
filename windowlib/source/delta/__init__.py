"""A Delta table as source: files that its versions added, and versions that remove files.

source.py            files that the versions of a Delta table added
log_values.py        partition values in a Delta log
removals.py          versions that remove files, and the windows to recompute
removal_times.py     time range of the events of a removal
removal_messages.py  messages about a removal, with commands to continue
rewritten.py         groups of files that versions rewrote into each other
table_types.py       column types of a Delta schema, and type widening
"""
