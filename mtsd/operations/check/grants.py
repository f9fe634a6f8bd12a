"""The grants that `mtsd check --grants` prints: enough for mtsd, and no more than the filter needs.

Whoever controls a source has what these grant on the target. So where the filter names all
databases, they are granted on those. Where it does not, the system schemas are taken out: who may
write to `mysql` makes himself an administrator, and who may change a routine of `sys` waits for an
administrator to call it.
"""

from collections.abc import Iterator

from mtsd.apply.sql.literals import shown_name, shown_text
from mtsd.config import Settings
from mtsd.filter.channels import named_databases
from mtsd.model.server import Flavour, ServerVersion
from mtsd.operations.check.privileges import (
    DEFINERS,
    EVERY_DATABASE,
    EVIDENCE,
    LOCKS,
    LOCKS_OF_ROWS,
    MIRROR,
    OWN_REPLICA,
    POSITION,
    SEE_TABLES,
    SESSION,
    SOURCE,
    WRITES_ALTHOUGH_READ_ONLY,
    XA,
    HeldPrivileges,
    NeededPrivilege,
    definitions,
    grant,
    missing,
    target_needs,
)
from mtsd.replica.core.filters import rules_of

_NEWEST = ServerVersion(Flavour.MYSQL, (900, 0, 0))
_OLD = ServerVersion(Flavour.MYSQL, (8, 1, 0))
_MARIADB = ServerVersion(Flavour.MARIADB, (900, 0, 0))
_OF_DEFINITIONS = definitions(_NEWEST)
_ONLY_OF_MARIADB = [name for name in definitions(_MARIADB) if name not in _OF_DEFINITIONS]
_WRITES_EVERYWHERE = "BINLOG REPLAY"
"""On a MariaDB, whose BINLOG does not look at privileges; a procedure may hold one, too."""
_KEPT = {"mysql": ("EXECUTE",), "sys": ("SELECT", "EXECUTE")}
"""What is left on the system schemas; statements of a source may call functions of `sys`."""


def statements(settings: Settings) -> Iterator[str]:
    """Yield the GRANT statements for both users, and comments, as lines of SQL.

    No server is asked. So what only one family has is in a comment that the other one passes over.
    A user's host is not in the settings: '%' stands for it.
    """
    yield "-- What begins with /*! is for MySQL alone, from that version on, with /*M! for MariaDB."
    source = f"{shown_text(settings.source.user)}@'%'"
    yield f"-- On the source ({settings.source.address}):"
    yield grant(missing(HeldPrivileges(), SOURCE, _NEWEST), source) + ";"
    yield "-- Lets `mtsd check` see which tables exist, but none of their contents:"
    yield grant(SEE_TABLES, source) + ";"
    yield ""
    target = f"{shown_text(settings.target.user)}@'%'"
    yield f"-- On the target ({settings.target.address}): statements of the source run again there."
    yield from _of_replication(settings, target)
    needed = settings.replica.consistency == "any_time"
    if needed:
        yield '-- For consistency = "any_time": who waits for whose locks (the second on MySQL):'
    else:
        yield "-- Only for the status to name who holds up a worker (the second on MySQL):"
    of_locks = [need.anyof[0] for need in LOCKS]
    for names, schema in ((of_locks, ""), (LOCKS_OF_ROWS, "performance_schema")):
        shown = grant(names, target, schema)
        yield f"{shown};" if needed else f"-- {shown};"
    yield "-- The position tables:"
    yield grant(POSITION, target, settings.target.schema) + ";"
    if settings.target.definer == "source":
        yield from _of_definers(target)
    yield "-- Only if CREATE USER, GRANT and similar are to be replicated: they need every"
    yield "-- privilege that they grant. Whoever controls the source is then root of the target."
    yield f"-- GRANT ALL ON *.* TO {target} WITH GRANT OPTION;"
    yield "-- Only if the target's gtid_mode is not ON: its binlog shows what became of a"
    yield "-- statement that was interrupted:"
    yield "-- " + grant([need.anyof[0] for need in EVIDENCE], target) + ";"
    if settings.target.gtid == "auto" and MIRROR[0] not in _needs(settings):
        yield "-- Only if the target has log_bin = OFF, because it then learns the source's GTIDs:"
        yield "-- " + grant([need.anyof[0] for need in MIRROR], target) + ";"
    yield "-- Only if the target is read_only (the second on a MariaDB):"
    for need in WRITES_ALTHOUGH_READ_ONLY:
        yield "-- " + grant([need.anyof[0]], target) + ";"


def _needs(settings: Settings, *, gtids: bool = True) -> tuple[NeededPrivilege, ...]:
    as_sql = settings.target.apply_mode == "sql"
    logs = settings.target.binary_log
    needs = target_needs(settings, logs=logs, gtids=gtids, as_sql=as_sql)
    return (*needs, *XA, *SESSION, *OWN_REPLICA)


def _of_replication(settings: Settings, target: str) -> Iterator[str]:
    """Yield what rows and statements need, for both families."""
    databases = named_databases(rules_of(settings.filter))
    names = missing(HeldPrivileges(), _needs(settings), _NEWEST)
    static = [name for name in names if "_" not in name]
    if databases is not None:
        yield grant(static, target) + ";"
    else:
        yield _on_mysql(grant([*_OF_DEFINITIONS, *static], target), "80000")
    yield _on_mysql(grant([name for name in names if "_" in name], target), "80200")
    yield "-- MySQL 8.0 and 8.1 instead (before 8.0.18 with BINLOG_ADMIN for REPLICATION_APPLIER):"
    older = missing(HeldPrivileges(), _needs(settings), _OLD)
    yield "-- " + grant([name for name in older if "_" in name], target) + ";"
    if databases is None:
        yield "-- Takes the system schemas out: whoever may write to mysql makes himself root. It"
        yield "-- takes MySQL 8.0.16; before that, name the databases in [filter]. From the first"
        yield "-- line on, % and _ are ordinary characters in everybody's grants on databases."
        yield _on_mysql("SET PERSIST partial_revokes = ON", "80000")
        for schema, kept in _KEPT.items():
            revoked = ", ".join(name for name in _OF_DEFINITIONS if name not in kept)
            yield _on_mysql(f"REVOKE {revoked} ON {shown_name(schema)}.* FROM {target}", "80000")
    of_mariadb = dict.fromkeys(missing(HeldPrivileges(), _needs(settings, gtids=False), _MARIADB))
    as_sql = settings.target.apply_mode == "sql"
    if as_sql:
        of_mariadb.pop(_WRITES_EVERYWHERE)
    if not settings.target.binary_log:
        of_mariadb["BINLOG ADMIN"] = None
    yield _on_mariadb(grant(list(of_mariadb), target))
    if databases is None:
        yield "-- A MariaDB cannot revoke a part, but a schema's own grant is the one that counts:"
        names = [*_OF_DEFINITIONS, *_ONLY_OF_MARIADB]
        yield _on_mariadb(grant(names, target, EVERY_DATABASE))
        for schema, kept in _KEPT.items():
            yield _on_mariadb(grant(kept, target, schema))
    if as_sql:
        yield "-- And only for a gtid_domain_id of mtsd's own, and for statements that change rows."
        yield "-- Its price: whoever has it can write to every table of a MariaDB:"
        yield "-- " + grant([_WRITES_EVERYWHERE], target) + ";"
    if databases is None:
        return
    yield "-- The databases that [filter] names:"
    for database in databases:
        yield grant(_OF_DEFINITIONS, target, database) + ";"
        yield _on_mariadb(grant(_ONLY_OF_MARIADB, target, database))
    if any("_" in database or "%" in database for database in databases):
        yield "-- (_ and % stand for any characters there, unless partial_revokes is ON.)"


def _on_mysql(statement: str, since: str) -> str:
    """Return a statement that a MySQL from this version on runs; a MariaDB passes over it."""
    return f"/*!{since} {statement} */;"


def _on_mariadb(statement: str) -> str:
    return f"/*M! {statement} */;"


def _of_definers(target: str) -> Iterator[str]:
    yield "-- Only for views, routines, triggers and events of the source, which keep the account"
    yield "-- that they belong to. Its price: this makes mtsd's user, and whoever controls the"
    yield "-- source, as powerful as any definer on the target, root included. Not needed with"
    yield '-- [target] definer = "current_user":'
    yield "-- " + grant(missing(HeldPrivileges(), DEFINERS, _NEWEST), target) + ";"
    yield "-- MySQL 8.0 and 8.1, and MariaDB, instead:"
    yield "-- " + grant(missing(HeldPrivileges(), DEFINERS, _OLD), target) + ";"
    yield "-- " + grant(missing(HeldPrivileges(), DEFINERS, _MARIADB), target) + ";"
