"""Loads for a MySQL source, and what tells whether a replica holds the same as its source.

`mixed` runs everything that a replica must carry, `small` the benchmark's transactions. `compare`
lists what differs between two servers; `journal` finds transactions applied twice or lost.
"""
