"""`report.html`: one file, no network, made of plain strings and inline SVG.

`charts` draws, `grid` lays out the crash points, `timeline` shows the worst run, `advice` turns
the figures into the reader's own money, and `page` puts them in order.
"""
