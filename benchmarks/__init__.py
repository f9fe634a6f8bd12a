"""mtsd compared with the server's own replica: the same source, fresh targets, one run.

`python -m benchmarks` does it all; docs/benchmarks.md says how and why. What `--part` names is in
`parts`, what is fed to them in `inputs`, the two replicas with their servers in `replicas`, and
what runs as processes of their own in `processes`. `figures` are the targets to reach, `report` the
tables. `python -m benchmarks.scaling` makes another table.
"""
