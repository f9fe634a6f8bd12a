"""What `mtsd check` says beforehand is what the daemon does: situation by situation, on servers."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

import pytest

from mtsd.apply.position.handed_over_table import HandedOver
from mtsd.apply.position.in_doubt_table import InDoubt
from mtsd.apply.position.position_tables import ChannelRow, PositionTables
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import Position
from mtsd.operations.check.lines.catalogue import Kind
from mtsd.schedule.done.executed_groups import ExecutedGroups
from mtsd.schedule.done.worker_row import WorkerRow, blank_row
from tests.operations.checked import told
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mysqld import GTIDS, Server
from tests.servers.pair import Pair

pytestmark = pytest.mark.servers

DAEMON_UUID = "5a33fa47-71ca-11e1-9e33-c80aa9429562"
STRANGE = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
NUMBER = 5
MODES = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
DOUBT = InDoubt(NUMBER + 1, 1, Position("f", 9), "ddl", "", "", "a", b"ALTER TABLE a.t ADD KEY (i)")


class Stage:
    """Two servers, and a third that has executed what the source has, to be the source instead."""

    def __init__(self, source: Server, target: Server, other: Server) -> None:
        self.source = source
        self.target = target
        self.other = other
        self.tables = PositionTables("mtsd", "")

    def reset(self) -> None:
        """Begin with two transactions on the source, and a target that knows of nothing."""
        for server in (self.source, self.target, self.other):
            set_gtid_mode(server, "ON")
            server.sql(
                "SET sql_log_bin = 0; DROP DATABASE IF EXISTS a; DROP DATABASE IF EXISTS mtsd;"
                "DROP DATABASE IF EXISTS elsewhere; RESET BINARY LOGS AND GTIDS"
            )
        self.source.sql("CREATE DATABASE a; CREATE TABLE a.t (i INT)")
        self.other.sql(f"SET GLOBAL gtid_purged = '{self.gtids}'")

    @property
    def uuid(self) -> str:
        return str(self.source.sql("SELECT @@server_uuid")[0][0])

    @property
    def end(self) -> Position:
        row = self.source.sql("SHOW BINARY LOG STATUS")[0]
        return Position(str(row[0]), int(str(row[1])))

    @property
    def gtids(self) -> GtidSet:
        return GtidSet.parse(str(self.source.sql("SELECT @@global.gtid_executed")[0][0]))

    @property
    def mark(self) -> LowWaterMark:
        """What has caught up with the source has."""
        return LowWaterMark(NUMBER, self.end, self.gtids)

    def leave(
        self, mark: LowWaterMark | None = None, *doubts: InDoubt, uuid: str = "", channel: str = ""
    ) -> None:
        """Let a former run have come to a mark, of the source's end where there is none given."""
        tables = PositionTables("mtsd", channel)
        row = ChannelRow(mark or self.mark, 1, uuid or self.uuid, DAEMON_UUID)
        worker = blank_row(1, row.mark, crc32(channel.encode()))
        statements = [*tables.definitions(), tables.insert_channel(row)]
        statements.append(tables.workers.replace(worker))
        statements += [tables.doubts.insert(doubt) for doubt in doubts]
        self.change(*statements)

    def change(self, *statements: bytes) -> None:
        self.target.sql(";".join(["SET sql_log_bin = 0", *(text.decode() for text in statements)]))

    def purge(self) -> None:
        """Let the source have nothing in its files but what comes."""
        self.source.sql("FLUSH BINARY LOGS")
        self.source.sql(f"PURGE BINARY LOGS TO '{self.end.file}'")

    def elsewhere(self) -> dict[str, Value]:
        return {"source.port": self.other.port}


def set_gtid_mode(server: Server, mode: str) -> None:
    ((now,),) = server.sql("SELECT @@global.gtid_mode")
    at, to = MODES.index(str(now)), MODES.index(mode)
    step = 1 if to > at else -1
    for name in MODES[at + step : to + step if to + step >= 0 else None : step] if at != to else ():
        server.sql(f"SET GLOBAL gtid_mode = {name}")


@dataclass(frozen=True)
class Situation:
    """How it comes about, and the line with which it is refused; None where all is well."""

    name: str
    refused: Kind | None
    prepare: Callable[[Stage], dict[str, Value] | None]


def situation(
    name: str, refused: Kind | None = None
) -> Callable[[Callable[[Stage], dict[str, Value] | None]], None]:
    def add(prepare: Callable[[Stage], dict[str, Value] | None]) -> None:
        SITUATIONS.append(Situation(name, refused, prepare))

    return add


SITUATIONS: list[Situation] = []
ALWAYS = frozenset({
    "a file that is not there", "earliest, purged", "going on",
    "going on, with more GTIDs than SHOW VARIABLES shows", "the file is purged",
    "another source", "another source, which has purged something",
    "another source, and a repair to be done",
    "the same source on another channel", "in doubt, and its GTID tells",
    "in doubt, without transactions", "mirror to a target that writes a binlog",
    "a position table is lost", "a worker's row is lost", "a text that mtsd did not write",
    "the channel's row is from an older copy", "killed while making the position tables",
    "a place inside of an event",
})  # fmt: skip
"""Those that run without --long too."""


@situation("first start")
def _(_: Stage) -> None:
    pass


@situation("no start", Kind.START_MISSING)
def _(_: Stage) -> dict[str, Value]:
    return {"source.start": ""}


@situation("a file that is not there", Kind.START_NO_PLACE)
def _(_: Stage) -> dict[str, Value]:
    return {"source.start": "binlog.000077:4"}


@situation("a place past the end", Kind.START_NO_PLACE)
def _(stage: Stage) -> dict[str, Value]:
    return {"source.start": f"{stage.end.file}:{stage.end.offset + 1}"}


@situation("a place inside of an event", Kind.START_INSIDE_GROUP)
def _(stage: Stage) -> dict[str, Value]:
    return {"source.start": f"{stage.end.file}:{stage.end.offset - 1}"}


@situation("a place that is there")
def _(stage: Stage) -> dict[str, Value]:
    return {"source.start": str(stage.end)}


@situation("a GTID set of another server", Kind.START_NOT_EXECUTED)
def _(_: Stage) -> dict[str, Value]:
    return {"source.start": f"gtid:{STRANGE}:1"}


@situation("a GTID set with too little", Kind.POSITION_PURGED)
def _(stage: Stage) -> dict[str, Value]:
    stage.purge()
    return {"source.start": f"gtid:{stage.uuid}:1"}


@situation("a GTID set without GTIDs", Kind.START_WITHOUT_GTIDS)
def _(stage: Stage) -> dict[str, Value]:
    gtids = stage.gtids
    set_gtid_mode(stage.source, "OFF")
    return {"source.start": f"gtid:{gtids}"}


@situation("earliest, purged", Kind.START_PURGED)
def _(stage: Stage) -> None:
    stage.purge()


@situation("earliest, purged, without GTIDs", Kind.START_FILES_PURGED)
def _(stage: Stage) -> None:
    set_gtid_mode(stage.source, "OFF")
    stage.purge()


@situation("earliest, purged on purpose")
def _(stage: Stage) -> dict[str, Value]:
    stage.purge()
    return {"source.allow_partial_history": True}


@situation("going on")
def _(stage: Stage) -> None:
    stage.leave()


@situation("going on, with more GTIDs than SHOW VARIABLES shows")
def _(stage: Stage) -> None:
    holes = ":".join(str(number) for number in range(1, 999, 2))
    stage.source.sql(f"SET GLOBAL gtid_purged = '+{STRANGE}:{holes}'")
    stage.leave()


@situation("handed over", Kind.HANDED_OVER)
def _(stage: Stage) -> None:
    stage.leave()
    fence = HandedOver("the server's own replica", "takeover --execute")
    stage.change(stage.tables.handed_over.replace_fence(fence))


@situation("going on by GTID")
def _(stage: Stage) -> None:
    stage.leave(replace(stage.mark, position=Position("", 0)))


@situation("going on by GTID where there are none", Kind.POSITION_BY_GTID)
def _(stage: Stage) -> None:
    stage.leave(replace(stage.mark, position=Position("", 0)))
    set_gtid_mode(stage.source, "OFF")


@situation("going on without GTIDs")
def _(stage: Stage) -> None:
    set_gtid_mode(stage.source, "OFF")
    stage.leave(replace(stage.mark, gtids=None))


@situation("the file is purged", Kind.POSITION_FILE_PURGED)
def _(stage: Stage) -> None:
    stage.leave()
    stage.source.sql("INSERT INTO a.t VALUES (1)")
    stage.purge()


@situation("the file is purged, what it held is applied", Kind.POSITION_FILE_APPLIED)
def _(stage: Stage) -> None:
    stage.leave()
    stage.purge()


@situation("by GTID, purged", Kind.POSITION_PURGED)
def _(stage: Stage) -> None:
    stage.leave(replace(stage.mark, position=Position("", 0)))
    stage.source.sql("INSERT INTO a.t VALUES (1)")
    stage.purge()


@situation("the source was reset", Kind.SOURCE_BEHIND)
def _(stage: Stage) -> None:
    stage.leave()
    stage.source.sql("RESET BINARY LOGS AND GTIDS")


@situation("the source was reset, and has written more", Kind.POSITION_REWRITTEN)
def _(stage: Stage) -> None:
    stage.source.sql("FLUSH BINARY LOGS")
    stage.leave()
    stage.source.sql("RESET BINARY LOGS AND GTIDS; SET sql_log_bin = 0; DROP DATABASE a")
    for database in "abcd":
        stage.source.sql(f"CREATE DATABASE {database}")
    stage.source.sql("FLUSH BINARY LOGS; DROP DATABASE b; DROP DATABASE c; DROP DATABASE d")


@situation("the source was restored, and has written more", Kind.POSITION_FILE_REPLACED)
def _(stage: Stage) -> None:
    stage.leave(replace(stage.mark, begun=1))


@situation("the source was reset, without GTIDs", Kind.POSITION_PAST_END)
def _(stage: Stage) -> None:
    set_gtid_mode(stage.source, "OFF")
    stage.leave(replace(stage.mark, gtids=None))
    stage.source.sql("RESET BINARY LOGS AND GTIDS")


@situation("the source lost what a worker has past the mark", Kind.SOURCE_BEHIND)
def _(stage: Stage) -> None:
    stage.leave()
    row = WorkerRow(
        1, None, stage.end, ExecutedGroups(NUMBER + 1).with_numbers([NUMBER + 2]),
        GtidSet.parse(f"{stage.uuid}:99"), 7,
    )  # fmt: skip
    stage.change(stage.tables.workers.replace(row))


@situation("another source")
def _(stage: Stage) -> dict[str, Value]:
    stage.leave()
    return stage.elsewhere()


@situation("another source, without GTIDs in the position", Kind.OTHER_SOURCE_NOT_KNOWN_BY_GTID)
def _(stage: Stage) -> dict[str, Value]:
    stage.leave(replace(stage.mark, gtids=None))
    return stage.elsewhere()


@situation("another source, which lacks something", Kind.SOURCE_BEHIND)
def _(stage: Stage) -> dict[str, Value]:
    stage.source.sql("INSERT INTO a.t VALUES (1)")
    stage.leave()
    return stage.elsewhere()


@situation("another source, which has purged something", Kind.POSITION_PURGED)
def _(stage: Stage) -> dict[str, Value]:
    stage.leave(replace(stage.mark, gtids=GtidSet.parse(f"{stage.uuid}:1")))
    return stage.elsewhere()


@situation("another source, and something in doubt", Kind.OTHER_SOURCE_NOT_KNOWN_BY_GTID)
def _(stage: Stage) -> dict[str, Value]:
    stage.leave(None, replace(DOUBT, statement=b"DROP TABLE a.t"))
    return stage.elsewhere()


@situation("another source, and a repair to be done", Kind.OTHER_SOURCE_NOT_REPAIRED)
def _(stage: Stage) -> dict[str, Value]:
    stage.leave()
    done = ExecutedGroups(NUMBER + 1).with_numbers([NUMBER + 2])
    row = WorkerRow(1, None, stage.end, done, GtidSet.parse(f"{stage.uuid}:99"), 7)
    stage.change(stage.tables.workers.replace(row), stage.tables.update_ordered(ordered=False))
    stage.source.sql(f"SET GTID_NEXT = '{stage.uuid}:99'; CREATE DATABASE b")
    stage.other.sql(f"SET GTID_NEXT = '{stage.uuid}:99'; CREATE DATABASE b")
    return stage.elsewhere()


@situation("another source, which another channel has", Kind.SOURCE_ON_ANOTHER_CHANNEL)
def _(stage: Stage) -> dict[str, Value]:
    stage.leave()
    ((uuid,),) = stage.other.sql("SELECT @@server_uuid")
    stage.leave(uuid=str(uuid), channel="rival")
    return stage.elsewhere()


@situation("the same source on another channel", Kind.SOURCE_ON_ANOTHER_CHANNEL)
def _(stage: Stage) -> None:
    stage.leave(channel="rival")


@situation("another source on another channel")
def _(stage: Stage) -> None:
    stage.leave(channel="rival", uuid=STRANGE)


@situation("in doubt, and its GTID tells")
def _(stage: Stage) -> None:
    stage.leave(None, replace(DOUBT, evidence=f"{DAEMON_UUID}:9"))


@situation("in doubt, and its error would tell")
def _(stage: Stage) -> None:
    stage.leave(None, replace(DOUBT, statement=b"DROP TABLE a.t"))


@situation("in doubt, and nothing tells", Kind.IN_DOUBT_WITHOUT_EVIDENCE)
def _(stage: Stage) -> None:
    stage.leave(None, DOUBT)


@situation("in doubt, and a person has told")
def _(stage: Stage) -> None:
    stage.leave(None, replace(DOUBT, resolution="applied"))
    stage.source.sql("INSERT INTO a.t VALUES (1)")


@situation("in doubt, and settled by the mark")
def _(stage: Stage) -> None:
    stage.leave(None, replace(DOUBT, number=NUMBER))


@situation("in doubt, without transactions", Kind.IN_DOUBT_NON_TRANSACTIONAL)
def _(stage: Stage) -> None:
    evidence = f"{DAEMON_UUID}:9"
    stage.leave(None, replace(DOUBT, kind="non_transactional", evidence=evidence))


@situation("in doubt, and the target's binlog tells")
def _(stage: Stage) -> None:
    (row,) = stage.target.sql("SHOW BINARY LOG STATUS")
    stage.leave()
    doubt = replace(DOUBT, target_file=str(row[0]), target_offset=int(row[1]), thread=77)
    record = PositionTables("mtsd", "").doubts.insert(doubt)
    stage.target.sql(record.decode())


@situation("in doubt, and the target has another binlog", Kind.IN_DOUBT_LOG_OTHER)
def _(stage: Stage) -> None:
    stage.leave(None, replace(DOUBT, target_file="binlog.000001", target_offset=4, thread=77))


@situation("in doubt, and the target's binlog is purged", Kind.IN_DOUBT_LOG_PURGED)
def _(stage: Stage) -> None:
    stage.leave(None, replace(DOUBT, target_file="binlog.000000", target_offset=4, thread=77))


@situation("mirror to a target that writes a binlog", Kind.MIRROR_WITH_BINLOG)
def _(_: Stage) -> dict[str, Value]:
    return {"target.gtid": "mirror"}


@situation("mirror to a target that writes none")
def _(_: Stage) -> dict[str, Value]:
    return {"target.gtid": "mirror", "target.binary_log": False}


@situation("preserve without GTIDs", Kind.GTIDS_NEEDED)
def _(stage: Stage) -> dict[str, Value]:
    set_gtid_mode(stage.target, "OFF")
    return {"target.gtid": "preserve"}


@situation("position tables with another engine", Kind.POSITION_TABLES_ENGINE)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(b"ALTER TABLE mtsd.slave_in_doubt ENGINE = MyISAM")


@situation("position tables with another column", Kind.POSITION_TABLES_ALTERED)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(b"ALTER TABLE mtsd.slave_relay_log_info DROP COLUMN Master_log_begun")


@situation("position tables of a later version", Kind.POSITION_TABLES_VERSION)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(b"UPDATE mtsd.slave_relay_log_info SET Schema_version = 99")


@situation("a position table is lost", Kind.POSITION_TABLES_PARTIAL)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(b"DROP TABLE mtsd.slave_worker_info")


@situation("the channel's row is lost", Kind.POSITION_ROW_LOST)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(
        b"DELETE FROM mtsd.slave_relay_log_info",
        b"INSERT INTO mtsd.slave_split_branch VALUES ('', 1, 0)",
    )


@situation("a worker's row is lost", Kind.POSITION_WORKERS_LOST)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(b"DELETE FROM mtsd.slave_worker_info")


@situation("a text that mtsd did not write", Kind.POSITION_UNREADABLE)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(b"UPDATE mtsd.slave_relay_log_info SET Executed_gtid_set = 'nonsense'")


@situation("the channel's row is from an older copy", Kind.POSITION_ROW_OLDER)
def _(stage: Stage) -> None:
    stage.leave()
    stage.change(b"UPDATE mtsd.slave_relay_log_info SET Group_number = Group_number - 2")


@situation("killed while making the position tables")
def _(stage: Stage) -> None:
    stage.change(*stage.tables.definitions()[:2])


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Pair(GTIDS, GTIDS) as pair, Server(GTIDS) as other:
        yield Stage(pair.source, pair.target, other)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[] if case.name in ALWAYS else pytest.mark.long)
        for case in SITUATIONS
    ],
)
def test_the_daemon_does_what_check_says(case: Situation, stage: Stage, tmp_path: Path) -> None:
    stage.reset()
    settings = case.prepare(stage) or {}
    with DaemonProcess(stage.source, stage.target, tmp_path, settings) as daemon:
        daemon.close()
        daemon.log.unlink()
        said = told(tmp_path, daemon.settings)
        daemon.start()
        if case.refused is None:
            assert said.status == 0, said.bad
            daemon.wait_until_running()
            assert daemon.stop() == 0, daemon.last_words()
            return
        assert said.status == 3
        assert daemon.wait() == 3, daemon.last_words()
        (line,) = (text for text in said.bad.values() if text.startswith("error"))
        assert line == said.bad[case.refused.id]
        # Its subject is before the colon, and it was given another file.
        foretold = line.partition(": ")[2].replace("check.toml", "config.toml")
        assert words(foretold) == words(str(daemon.records()[-1]["error"]))


def words(text: str) -> list[str]:
    """Return what is said, however it is divided into sentences."""
    return re.findall(r"\w+", text.lower())


def test_a_function_that_the_target_refuses_to_everybody(stage: Stage, tmp_path: Path) -> None:
    stage.reset()
    stage.source.sql("SET GLOBAL log_bin_trust_function_creators = ON")
    try:
        with DaemonProcess(stage.source, stage.target, tmp_path) as daemon:
            daemon.wait_until_caught_up()
            said = told(tmp_path, daemon.settings)
            # Its user is root.
            assert "function-creators" not in said.bad
            assert "1418" in said.bad["unsafe-functions"]
            stage.source.sql("CREATE FUNCTION a.f() RETURNS INT RETURN RAND()")
            assert daemon.wait() == 3
            assert "error 1418" in str(daemon.records()[-1]["error"])
            unlogged = {**daemon.settings, "target.binary_log": False}
            assert "unsafe-functions" not in told(tmp_path, unlogged).bad
            stage.target.sql("SET GLOBAL log_bin_trust_function_creators = ON")
            assert "unsafe-functions" not in told(tmp_path, daemon.settings).bad
            daemon.start()
            daemon.wait_until_caught_up()
            assert daemon.stop() == 0
    finally:
        for server in (stage.source, stage.target):
            server.sql("SET GLOBAL log_bin_trust_function_creators = OFF")


def test_a_database_of_the_position_schemas_name(stage: Stage, tmp_path: Path) -> None:
    stage.reset()
    with DaemonProcess(stage.source, stage.target, tmp_path) as daemon:
        daemon.wait_until_caught_up()
        assert daemon.stop() == 0
    assert "position-schema-on-source" not in told(tmp_path, daemon.settings).lines
    stage.source.sql("CREATE DATABASE mtsd; CREATE TABLE mtsd.orders (i INT)")
    said = told(tmp_path, daemon.settings)
    assert "mtsd exists (orders" in said.bad["position-schema-on-source"]
    # The target of one mtsd may be the source of another.
    backwards = {**daemon.settings, "source.port": stage.target.port}
    backwards |= {"target.port": stage.source.port}
    assert "position-schema-of-another" in told(tmp_path, backwards).lines
