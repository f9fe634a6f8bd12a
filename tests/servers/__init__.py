"""Real servers for tests, the demo and the benchmarks, without Docker or root.

`apt` unpacks Debian packages, `provision` finds or downloads a MySQL, `mariadb` a MariaDB; `mysqld`
runs one server, `pair` a source and a target. `apt`, `pip` and `provision` need the standard
library only: they run before the project's environment exists.
"""
