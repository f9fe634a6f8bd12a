"""mtsd beside the server's own replica: the same source, fresh targets, one run.

`python -m benchmarks` does it all; docs/benchmarks.md says how and why. `servers` is the two kinds
of server, `native` the server's own replica, `external` mtsd, `process` what a process has used,
`commits` what a binlog says of when, `backlog`, `large` and `lag` the three parts, `figures` what
has to be reached, `report` the tables.
"""
