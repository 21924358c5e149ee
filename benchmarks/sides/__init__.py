"""Who computes the windows of a workload.

Each module has the work of one or more sides: a generator that yields once it is ready, then does a piece of work
whenever it is resumed, `STEP` (the newest file) or `FINISH` (every window fires; where that cannot be said: nothing).
"""
