"""Move of a pipeline's tables to another storage, such as from a disk to S3 and back.

move.py     operation `move`: copy, close the old place, copy the ledger, open the new place
target.py   new place, and the reasons to refuse it
copying.py  copies of objects, compared byte by byte
rows.py     rows of the copied tables, counted in the files and compared with the logs
"""
