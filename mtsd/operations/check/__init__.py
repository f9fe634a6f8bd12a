"""`mtsd check`: everything that could fail later, now.

`facts` describes what was read from a server, `reading` reads it, and the modules of lines turn
facts and settings into the lines of `catalogue`, without I/O.
"""
