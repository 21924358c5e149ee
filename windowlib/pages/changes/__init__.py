"""Changes of results, for pages and the command `windowlib changes`.

since_moment.py     changes since a time or a batch, by day and cause, with sums before and after
by_batch.py         changes of each batch, stored for the next page
changed_windows.py  rows of windows that a batch changed: values before it, sessions that grew
waiting.py          changes that a waiting batch would make, with examples
last_change.py      time of the last change
"""
