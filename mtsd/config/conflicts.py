"""Keys that must be consistent with each other."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mtsd.config.problems import shown
from mtsd.config.settings import EndpointSettings, ReplicaSettings, Settings
from mtsd.config.start import Earliest
from mtsd.model.distribution import Distribution
from mtsd.model.names import folded
from mtsd.model.parallel_type import BY_NAMES


@dataclass(frozen=True, slots=True)
class Conflict:
    """Keys that contradict each other; the first of them is the one to report.

    `found` and `allowed` are as in `Problem`.
    """

    keys: tuple[str, ...]
    found: str
    allowed: str


def conflicts(settings: Settings, given: Collection[str]) -> Iterator[Conflict]:
    """Find keys that contradict each other; `given` are those that were set explicitly."""
    for section, endpoint in (("source", settings.source), ("target", settings.target)):
        yield from _endpoint_conflicts(section, endpoint, given)
    yield from _same_places(settings)
    replica = settings.replica
    if replica.batch_bytes > replica.pending_jobs_size_max:
        # The key that was given is reported, whichever of the two it is.
        keys = ("replica.batch_bytes", "replica.pending_jobs_size_max")
        allowed = f"at most {keys[1]} = {replica.pending_jobs_size_max}, which includes it"
        found = replica.batch_bytes
        if keys[0] not in given:
            keys = (keys[1], keys[0])
            allowed = f"at least {keys[1]} = {replica.batch_bytes}, which is part of it"
            found = replica.pending_jobs_size_max
        yield Conflict(keys, f"found {found}", f"allowed is {allowed}")
    if settings.target.apply_mode == "binlog":
        yield from _not_by_binlog(replica)
    yield from _newer_row_conflicts(settings)
    yield from _distribution_conflicts(replica)
    for name, target in settings.filter.rewrite_db:
        # One database on a target with lower_case_table_names = 1.
        if folded(target) == folded(settings.target.schema):
            yield Conflict(
                ("filter.rewrite_db", "target.schema"),
                f"found {shown([name, target])}, and {shown(target)} is target.schema",
                "allowed is a database of its own: the position schema is mtsd's",
            )
    if settings.replica.split_transactions != "off" and settings.replica.consistency != "eventual":
        yield Conflict(
            ("replica.split_transactions", "replica.consistency"),
            f"found {shown(settings.replica.split_transactions)} together with "
            f"replica.consistency = {shown(settings.replica.consistency)}",
            'allowed only with replica.consistency = "eventual", because the parts of a '
            "transaction become visible one by one",
        )
    if settings.replica.split_transactions != "off" and settings.target.gtid == "preserve":
        yield Conflict(
            ("replica.split_transactions", "target.gtid"),
            f"found {shown(settings.replica.split_transactions)} together with"
            ' target.gtid = "preserve"',
            'allowed is target.gtid = "auto", "mirror" or "off", because the parts of a'
            " transaction cannot all have its GTID",
        )


def _not_by_binlog(replica: ReplicaSettings) -> Iterator[Conflict]:
    if replica.exec_mode == "idempotent":
        yield Conflict(
            ("replica.exec_mode", "target.apply_mode"),
            'found "idempotent" together with target.apply_mode = "binlog"',
            'allowed is target.apply_mode = "sql", or "auto", which then means the same',
        )
    elif (
        replica.exec_mode == "auto"
        and replica.consistency == "eventual"
        and not replica.newer_row_column
    ):
        yield Conflict(
            ("replica.consistency", "target.apply_mode", "replica.exec_mode"),
            'found "eventual", which applies rows idempotently, together with target.apply_mode ='
            ' "binlog"',
            'allowed is target.apply_mode = "sql", or "auto", which then means the same; or'
            ' replica.exec_mode = "strict", if the load never has two transactions that change the'
            " same row",
        )


def _newer_row_conflicts(settings: Settings) -> Iterator[Conflict]:
    replica = settings.replica
    key = "replica.newer_row_column"
    if not replica.newer_row_column:
        return
    found = f"found {shown(replica.newer_row_column)} together with"
    if replica.consistency != "eventual":
        yield Conflict(
            (key, "replica.consistency"),
            f"{found} replica.consistency = {shown(replica.consistency)}",
            'allowed is "eventual": otherwise rows keep their order, and the last one wins',
        )
    if replica.exec_mode == "strict":
        yield Conflict(
            (key, "replica.exec_mode"),
            f'{found} replica.exec_mode = "strict"',
            'allowed is "auto": that a newer row is there already is no error then',
        )
    if settings.target.apply_mode == "binlog":
        yield Conflict(
            (key, "target.apply_mode"),
            f'{found} target.apply_mode = "binlog", which cannot compare rows',
            'allowed is target.apply_mode = "sql", or "auto", which then means the same',
        )


def _distribution_conflicts(replica: ReplicaSettings) -> Iterator[Conflict]:
    done = {"bind": "bound", "pin": "pinned", "weigh": "weighed"}
    for name, participle in done.items():
        value = getattr(replica, name)
        if value and replica.parallel_type not in BY_NAMES:
            yield Conflict(
                (f"replica.{name}", "replica.parallel_type"),
                f"found {shown([list(each) for each in value])} together with"
                f" replica.parallel_type = {shown(replica.parallel_type)}",
                f"allowed is [], because that policy goes by no names; databases are {participle}"
                " where they are what keeps transactions in order",
            )
    if replica.parallel_workers:
        distribution = Distribution(replica.bind, replica.pin)
        for problem in distribution.problems(replica.parallel_workers):
            yield Conflict(
                ("replica.pin", "replica.parallel_workers", "replica.bind"),
                f"found that {problem}",
                "allowed is a worker from 1 to replica.parallel_workers, the same for all databases"
                " that are bound together",
            )


def _endpoint_conflicts(
    section: str, endpoint: EndpointSettings, given: Collection[str]
) -> Iterator[Conflict]:
    host, socket = f"{section}.host", f"{section}.unix_socket"
    if endpoint.unix_socket is not None and endpoint.host and host in given:
        yield Conflict(
            (socket, host),
            f"found {shown(str(endpoint.unix_socket))} together with {host} = "
            f"{shown(endpoint.host)}",
            'allowed is one of the two; leave out the other or set it to ""',
        )
    if endpoint.unix_socket is None and not endpoint.host:
        yield Conflict(
            (host, socket), f'found "", and no {socket} either', "allowed is one of the two"
        )
    password, file = f"{section}.password", f"{section}.password_file"
    if endpoint.password.get_secret_value() and endpoint.password_file is not None:
        yield Conflict(
            (file, password),
            f"found {shown(str(endpoint.password_file))} together with {password}",
            'allowed is one of the two; leave out the other or set it to ""',
        )
    cert, key = f"{section}.tls_cert", f"{section}.tls_key"
    if (endpoint.tls_cert is None) != (endpoint.tls_key is None):
        there, missing = (key, cert) if endpoint.tls_cert is None else (cert, key)
        path = endpoint.tls_key if endpoint.tls_cert is None else endpoint.tls_cert
        yield Conflict(
            (there, missing),
            f"found {shown(str(path))} without {missing}",
            "allowed is both or neither",
        )


def _same_places(settings: Settings) -> Iterator[Conflict]:
    source, target = settings.source, settings.target
    if source.address == target.address:
        name = "unix_socket" if target.unix_socket is not None else "host"
        keys = tuple(
            f"{section}.{key}"
            for section in ("target", "source")
            for key in (name, "port")[: 1 + (name == "host")]
        )
        yield Conflict(
            keys,
            f"found {target.address}, which is also the source",
            "allowed is a server other than the source",
        )
    socket = settings.status.socket
    for section, endpoint in (("source", source), ("target", target)):
        if socket is not None and endpoint.unix_socket == socket:
            yield Conflict(
                ("status.socket", f"{section}.unix_socket"),
                f"found {shown(str(socket))}, which is also {section}.unix_socket",
                "allowed is a path not used by a server: the daemon creates its socket there",
            )


def ineffective(settings: Settings, given: Collection[str]) -> Iterator[str]:
    """Yield a warning for each setting that does less than it seems to.

    `given` are the keys that were set explicitly.
    """
    for section, endpoint in (("source", settings.source), ("target", settings.target)):
        yield from _without_tls(section, endpoint)
    replica = settings.replica
    if (
        "replica.batch_groups" in given
        and replica.batch_groups > 1
        and settings.target.gtid == "preserve"
    ):
        yield (
            f"replica.batch_groups = {replica.batch_groups} has no effect while target.gtid is "
            '"preserve": transactions are not combined'
        )
    elif "replica.batch_groups" in given and replica.batch_groups > replica.checkpoint_group:
        yield (
            f"replica.batch_groups = {replica.batch_groups} is never reached: at most "
            f"replica.checkpoint_group = {replica.checkpoint_group} are in progress"
        )
    if replica.parallel_workers == 0:
        for name in ("bind", "pin", "weigh"):
            if getattr(replica, name):
                yield (
                    f"replica.{name} has no effect while replica.parallel_workers is 0: there is"
                    " one queue"
                )
    elif replica.consistency == "eventual":
        for name in ("bind", "pin", "weigh"):
            if getattr(replica, name):
                yield (
                    f'replica.{name} has no effect while replica.consistency is "eventual": any'
                    " worker applies any transaction of rows"
                )
    elif replica.consistency == "any_time" and replica.weigh and replica.parallel_workers > 1:
        yield (
            'replica.weigh has no effect while replica.consistency is "any_time": no worker is'
            " chosen by weights"
        )
    if replica.split_transactions != "off" and replica.parallel_workers <= 1:
        yield (
            f"replica.split_transactions = {shown(replica.split_transactions)} has no effect while"
            f" replica.parallel_workers is {replica.parallel_workers}: there is one worker"
        )
    yield from _ineffective_rules(settings)
    source = settings.source
    if source.semi_sync != "off" and replica.delay:
        yield (
            f"source.semi_sync has no effect while replica.delay is {replica.delay}: what is held"
            " back is not on the target, so mtsd withdraws"
        )
    if source.allow_partial_history and source.start not in {None, Earliest()}:
        yield (
            f"source.allow_partial_history has no effect while source.start is "
            f'{shown(str(source.start))}: it applies to "earliest"'
        )


def _ineffective_rules(settings: Settings) -> Iterator[str]:
    given = settings.filter
    if given.do_db and given.ignore_db:
        yield "filter.ignore_db has no effect while filter.do_db is set: it names all there is"
    renamed = {name for name, _ in given.rewrite_db}
    renamed -= {target for _, target in given.rewrite_db}
    for key, names in (("do_db", given.do_db), ("ignore_db", given.ignore_db)):
        for name in renamed.intersection(names):
            yield (
                f"filter.{key} has no effect on {shown(name)}: filter.rewrite_db renames it, and"
                " the other rules apply to names on the target"
            )
    schema = settings.target.schema
    if schema in (*given.do_db, *(name for name, _ in given.rewrite_db)):
        yield (
            f"the filter has no effect on {shown(schema)}: it is target.schema, which is never"
            " replicated"
        )


def _without_tls(section: str, endpoint: EndpointSettings) -> Iterator[str]:
    if endpoint.unix_socket is not None and endpoint.tls not in {"disabled", "preferred"}:
        yield (
            f"{section}.tls = {shown(endpoint.tls)} has no effect on {section}.unix_socket: the "
            "mode of the socket's folder decides who may connect"
        )
        return
    if endpoint.tls_ca is not None and not endpoint.tls.startswith("verify_"):
        yield (
            f"{section}.tls_ca has no effect while {section}.tls is {shown(endpoint.tls)}: "
            f'set "verify_ca" or "verify_identity" to have the server verified'
        )
    if endpoint.tls_cert is not None and endpoint.tls == "disabled":
        yield f'{section}.tls_cert has no effect while {section}.tls is "disabled"'
    if endpoint.get_public_key and endpoint.server_public_key is not None:
        yield (
            f"{section}.get_public_key has no effect while {section}.server_public_key is set: no"
            " key is asked for"
        )
