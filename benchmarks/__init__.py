"""mtsd compared with the server's own replica: the same source, fresh targets, one run.

`python -m benchmarks` does it all; docs/benchmarks.md says how and why. `servers` has the two kinds
of server, `native` the server's own replica, `external` mtsd, `process` what a process has used,
`machine` the processors and who else has used them, `commits` the commit times in a binlog,
`backlog`, `large` and `lag` the three parts, `figures` the targets to reach, `report` the tables.
`cpu` is a separate part without servers: what a transaction costs the daemon by stage (`stages`),
using a file that is created once (`recording`).
"""
