"""Counts of the rows of files by hour, for the table of days and the plots. Each file is counted once.

count_cache.py   counts of files, stored for the next page
row_counts.py    rows of a file by hour, with the values of the numeric outputs
row_reader.py    rows of tables by the hour of a result's end or of an event
hour_counts.py   windows and events by the hour of the start of a window
column_profiles.py  nulls, extremes and means of each result column by day
"""
