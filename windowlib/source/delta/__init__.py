"""A Delta table as source: the files that its versions added, and what removals of its files mean.

source.py            files that the versions of a Delta table added
log_values.py        partition values in a Delta log
removals.py          versions that remove files, and what becomes of their rows
removal_messages.py  messages about a removal, with the commands to go on
rewritten.py         files rewritten from each other, as by compaction or an update
table_types.py       column types of a Delta schema, and type widening
"""
