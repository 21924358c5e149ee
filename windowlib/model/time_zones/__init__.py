"""Time zones: offsets of local time from UTC, and the edges of intervals of local time.

zones.py   zones: periods of constant offset, from the package `tzdata`
edges.py   edges of days, months and hours in these periods
"""
