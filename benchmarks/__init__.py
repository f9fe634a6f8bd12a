"""mtsd beside the server's own replica: the same source, fresh targets, one run.

`python -m benchmarks` does it all; docs/benchmarks.md says how and why. `servers` is the two kinds
of server, `native` the server's own replica, `external` mtsd, `process` what a process has used,
`machine` the processors and who else has used them, `commits` what a binlog says of when,
`backlog`, `large` and `lag` the three parts, `figures` what has to be reached, `report` the tables.
`cpu` is a part apart, without servers: what a transaction costs the daemon by stage (`stages`), on
a file that is made once (`recording`).
"""
