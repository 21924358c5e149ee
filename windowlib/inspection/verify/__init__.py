"""Windows recomputed from the source in plain batch, and compared with what a pipeline shows.

recorded   what the ledger says about each batch: watermarks, reruns, files
asked      which windows: a range of time, a sample of keys
events     which rows of the source count
settled    what became of touching sessions, batch after batch: plain Python
aligned, sessions, counts   the windows that there should be
compared   how two sets of windows differ
report     the outcome
verify     all of that
"""
