"""Grids of aligned windows: the slices of events, and the windows that end over a slice.

grid.py         Protocol of a grid
fixed.py        windows of fixed lengths
by_calendar.py  windows of calendar intervals
edges.py        edges of a calendar as SQL
local_times.py  local times of edges as SQL
"""
