"""Shapes of the plots: rectangles in a box that the page stretches. Text is in the page around the box.

We would normally use a plotting library. These pages use their own SVG for two reasons:

* Plots are complete without a script. Libraries that draw in the browser need one; Vega also needs `unsafe-eval`.
* Plots follow the reader's colours and width by the style sheet, in dark mode and at 390 px. Matplotlib's SVG has fixed
  colours and sizes, and its text is outlines that screen readers cannot read.

The script `plots.js` shows the value below the pointer, or the value that the arrow keys choose. Without it, browsers
show values as tooltips. Each plot has one series. Several series would be a reason to use a library.

bars.py        bars in front of a band, with axes
scale.py       round numbers on an axis
by_batch.py    trends and values of checks, batch by batch
headline.py    headline values by day and by hour
by_hour.py     events and results by hour of event time
sparkline.py   thin bars in a row of a table
"""
