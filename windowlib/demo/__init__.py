"""The demo: clicks with a known truth, sessions and sliding windows over them, and a comparison in numbers.

clicks     the true sessions and their events, made before anything else
arrivals   in which file each event arrives, out of order and late
files      the arrival files, with second copies and rows that no window can use
truth      what a run over them must find
compare    found and expected, in numbers
runs       a pipeline run in a process of its own
run        the command: all of the above in one folder, or a folder of the reader's own files
"""
