"""`mtsd check`: everything that could fail later, now.

`facts` describes what was read from a server, `reading` reads it, `decisions` says what the daemon
would decide about it, and `lines` turn facts and settings into the lines of their catalogue,
without I/O.
"""
