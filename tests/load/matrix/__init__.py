"""A load with every statement and type that a binary log can hold, between any two servers.

Its parts are generators of steps, each in databases of its own: `load.MatrixLoad` runs them side by
side, so that their transactions interleave. What the two servers do not both understand is left
out by a named condition (`place`).
"""
