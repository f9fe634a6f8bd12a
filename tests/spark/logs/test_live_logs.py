"""A live source's files are read unchanged through dumps, each with its own server id."""

import asyncio
import json
import random
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from mtsd.binlog.files.range_reader import RangeReader
from mtsd.binlog.files.ranges import ByteRange, Tail, whole_file
from mtsd.model.errors import BinlogError, NeedsPersonError
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.spark.arrays.column_arrays import Dates
from mtsd.spark.logs import live_connection
from mtsd.spark.logs.folder_logs import FolderLogs
from mtsd.spark.logs.live_connection import SourceError
from mtsd.spark.logs.live_logs import LiveLogs
from mtsd.spark.logs.logs import FilesError, Logs
from mtsd.spark.options.live_options import LiveOptions
from mtsd.spark.options.options import Options
from mtsd.spark.shapes.table_shape import TableShape
from mtsd.spark.source.stream_plan import next_end, parts_between
from mtsd.wire.connection import Connection
from mtsd.wire.dump_packets import COM_REGISTER_SLAVE, register
from tests.binlog.range_cases import declared
from tests.binlog.recording import OPTIONS, play
from tests.binlog.row_values import KINDS, LENIENT, create, names, row
from tests.servers.certificates import Authority
from tests.servers.mysqld import Server
from tests.servers.provision import Installation, provide

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def source() -> Iterator[Server]:
    with Server({**OPTIONS, "max_binlog_size": 65536}) as server:
        play(server)
        yield server


def options(server: Server, **others: object) -> LiveOptions:
    given = {"port": server.port, "user": "root", "retry_seconds": 5.0, **others}
    return LiveOptions(**given)  # type: ignore[arg-type]


@contextmanager
def logs(server: Server, **others: object) -> Iterator[LiveLogs]:
    found = LiveLogs(options(server, **others))
    try:
        yield found
    finally:
        found.close()


def groups(logs: Logs, parts: list[ByteRange], hold_bytes: int = 8 << 20) -> list[object]:
    found: list[object] = []
    for bounds in parts:
        name = Path(bounds.file).name
        with logs.opened(bounds) as contents:
            reader = RangeReader(contents, bounds, name, hold_bytes=hold_bytes)
            found += [(name, one) for one in declared(list(reader.parts()))]
    return found


@pytest.mark.parametrize("server_ids", [(), (4001, 4002)])
def test_the_same_groups_as_the_files(source: Server, server_ids: tuple[int, ...]) -> None:
    here = FolderLogs(str(source.datadir))
    with logs(source, server_ids=server_ids) as there:
        files = there.files()
        assert [(Path(file).name, size) for file, size in here.files()] == files
        wanted = groups(here, [whole_file(*file) for file in here.files()])
        assert groups(there, [whole_file(*file) for file in files]) == wanted
        assert len(wanted) > 50


@pytest.mark.parametrize("most", [3_000, 40_000, None])
def test_ends_lead_from_one_to_the_next(source: Server, most: int | None) -> None:
    here = FolderLogs(str(source.datadir))
    with logs(source) as there:
        wanted = groups(there, [whole_file(*file) for file in there.files()])
        found: list[object] = []
        place = Position(there.files()[0][0], FIRST_EVENT)
        while (end := next_end(there, place, most, None)) != place:
            assert end == next_end(here, place, most, None)
            found += groups(there, parts_between(there, place, end))
            place = end
        assert found == wanted


def test_large_groups_and_jumps_back(source: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtsd.spark.logs.dump_contents._KEPT", 200)
    monkeypatch.setattr("mtsd.spark.logs.dump_contents._STEP", 500)
    monkeypatch.setattr("mtsd.binlog.files.range_reader._PIECE", 300)
    here = FolderLogs(str(source.datadir))
    with logs(source) as there:
        (name, size), (path, _) = there.files()[0], here.files()[0]
        wanted = groups(here, [whole_file(path, size)], hold_bytes=2000)
        assert groups(there, [whole_file(name, size)], hold_bytes=2000) == wanted
        data = Path(path).read_bytes()
        with there.opened(ByteRange(name, FIRST_EVENT, size, size)) as contents:
            for at in (0, size - 50, 2, 5000, 4, size // 2, 100):
                assert contents.read(at, 60)[125:] == data[at : min(at + 60, size)][125:]
                if at > 200:
                    assert contents.read(at, 60) == data[at : min(at + 60, size)]


def write_large(source: Server) -> str:
    """Write a file with a transaction larger than what is kept in memory; return its name."""
    source.sql("FLUSH BINARY LOGS")
    name = str(source.sql("SHOW BINARY LOG STATUS")[0][0])
    source.sql("CREATE DATABASE large; CREATE TABLE large.t (id INT PRIMARY KEY, v LONGBLOB)")
    with closing(source.client("large")) as client, client.cursor() as cursor:
        cursor.execute("BEGIN")
        for number in range(12):
            cursor.execute("INSERT INTO t VALUES (%s, %s)", (number, random.randbytes(1 << 20)))
        cursor.execute("COMMIT")
    source.sql("DROP DATABASE large")
    return name


@pytest.fixture(scope="module")
def large(source: Server) -> str:
    return write_large(source)


def test_the_dump_is_killed_in_the_middle(source: Server, large: str) -> None:
    here = FolderLogs(str(source.datadir))
    path, size = next(file for file in here.files() if Path(file[0]).name == large)
    wanted = groups(here, [whole_file(path, size)])
    assert wanted
    with logs(source) as there:
        bounds = whole_file(large, size)
        with there.opened(bounds) as contents:
            contents.read(0, 1000)
            for number, _, _, _, command, *_ in source.sql("SHOW PROCESSLIST"):
                if command == "Binlog Dump":
                    source.sql(f"KILL {number}")
            reader = RangeReader(contents, bounds, large)
            assert [(large, one) for one in declared(list(reader.parts()))] == wanted


@pytest.mark.parametrize("killed", [False, True])
def test_the_source_restarts_in_the_middle(source: Server, *, killed: bool) -> None:
    """The file it was writing is read to the end that was planned, although another one follows."""
    written = write_large(source)
    with logs(source) as there:
        bounds = whole_file(*next(file for file in there.files() if file[0] == written))
        here = FolderLogs(str(source.datadir))
        path = next(file for file, _ in here.files() if Path(file).name == written)
        wanted = groups(here, [whole_file(path, bounds.size)])
        with there.opened(bounds) as contents:
            contents.read(0, 200)
            if killed:
                source.kill()
                source.start()
            else:
                source.restart()
            reader = RangeReader(contents, bounds, written)
            assert [(written, one) for one in declared(list(reader.parts()))] == wanted


async def test_two_readers_never_share_an_id(
    source: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = options(source, server_ids=(source.options["server_id"], 4101, 4102))
    monkeypatch.setattr(live_connection, "_ID_PAUSE_S", 0.02)

    async def take() -> tuple[Connection, int]:
        connection, traits = await live_connection._opened(live)
        try:
            found = await live_connection._server_id(connection, traits, live.server_ids)
        except BaseException:
            connection.close()
            raise
        return connection, found

    first, second = await take(), await take()
    assert {first[1], second[1]} == {4101, 4102}
    third = asyncio.create_task(take())
    await asyncio.sleep(0.3)
    assert not third.done()
    first[0].close()
    assert (await third)[1] == first[1]
    monkeypatch.setattr(live_connection, "_ID_WAIT_S", 0.1)
    with pytest.raises(NeedsPersonError, match=r"all 3 ids of option server_ids have been in use"):
        await take()
    second[0].close()
    (await third)[0].close()


def test_who_does_not_know_the_password_does_not_know_the_names_of_the_locks() -> None:
    def of(user: str, password: str) -> dict[int, bytes]:
        login = LiveOptions(host="h", user=user, password=password)
        return live_connection.id_locks(login.endpoint(), "u", (1, 2))

    names = of("one", "p")
    assert names == of("one", "p")
    others = of("one", "q"), of("two", "p")
    assert not any(set(names.values()) & set(each.values()) for each in others)
    assert all(len(name) <= 64 for name in names.values())


async def test_the_id_of_another_replica_is_not_taken(source: Server) -> None:
    live = options(source, server_ids=(4111, 4112))
    other = await Connection.open(live.endpoint())
    await other.command(COM_REGISTER_SLAVE, register(4111, "", 0), answer=True)
    connection, traits = await live_connection._opened(live)
    assert await live_connection._server_id(connection, traits, live.server_ids) == 4112
    connection.close()
    other.close()


def test_what_is_wrong_is_one_line(source: Server, tmp_path: Path) -> None:
    source.sql("CREATE USER who IDENTIFIED BY 'secret'")
    with logs(source, user="who", password="wrong") as there:
        with pytest.raises(SourceError, match=r"refuses user 'who'.*Check option user") as caught:
            there.files()
        assert "wrong" not in str(caught.value)
    for others, message in (
        ({"user": "who", "password": "secret"}, r"REPLICATION CLIENT.*option user"),
        ({"port": 1, "retry_seconds": 0.3}, r"nothing is listening at 127.0.0.1:1: .*option host"),
        ({"password_file": tmp_path / "none"}, r"password_file = .* cannot be read: No such file"),
        ({"password_env": "NONE_SUCH"}, r"password_env = 'NONE_SUCH': there is no such variable"),
    ):
        with logs(source, **others) as there, pytest.raises(SourceError, match=message):
            there.files()
    with logs(source) as there:
        there.files()
        with pytest.raises(FilesError, match=r"has no binlog.000000 any more.*is the oldest"):
            next_end(there, Position("binlog.000000", 4), None, None)
        name, size = there.files()[-1]
        with pytest.raises(FilesError, match=r"has been read up to byte"):
            next_end(there, Position(name, size + 1), None, None)
        for bounds in (
            ByteRange("binlog.000000", FIRST_EVENT, 900, 900),
            ByteRange(name, 130, size, size, 130),
        ):
            with pytest.raises(SourceError, match=r"cannot send binlog.0000\d\d from byte"):
                groups(there, [bounds])


def test_tls(source: Server, tmp_path: Path) -> None:
    authority = str(source.datadir / "ca.pem")
    with logs(source, tls="verify_ca", tls_ca=authority) as there:
        (name, size), *_ = there.files()
        assert groups(there, [whole_file(name, size)])
    other = Authority.new(tmp_path, "other").ca
    for ca, message in (
        (other, r"certificate is not signed by a CA in option tls_ca"),
        ("/none", r"option tls_ca = '/none' cannot be read"),
    ):
        with logs(source, tls="verify_ca", tls_ca=str(ca)) as there, pytest.raises(
            SourceError, match=message
        ):  # fmt: skip
            there.files()


def test_columns_have_the_types_of_the_rows(source: Server) -> None:
    """A table's definition gives the same columns as its rows in the binary log."""
    source.sql("FLUSH BINARY LOGS; CREATE DATABASE every")
    with closing(source.client("every")) as client, client.cursor() as cursor:
        cursor.execute(create("kinds"))
        cursor.execute(LENIENT)
        rng = random.Random(1)
        cursor.execute(f"INSERT INTO kinds (id, {names(KINDS)}) VALUES (1, {row(rng)})")
    shape = TableShape()
    options = Options(shape="table", table=("every", "kinds"))
    files = FolderLogs(str(source.datadir)).files()[-1:]
    with logs(source) as there:
        assert there.definition("every", "none") is None
        defined = there.definition("every", "kinds")
    of_rows = StructType()
    for dates in Dates:
        of_rows = shape.schema(replace(options, dates=dates), files)
        of_definition = shape.schema(replace(options, dates=dates, loaded=defined), [])
        assert of_definition == of_rows
    assert len(of_rows) > len(KINDS)


@dataclass(frozen=True)
class WithKeyring(Installation):
    """Runs mysqld through a link that is next to the manifest that loads a keyring."""

    folder: Path = Path()

    def server(self) -> list[str]:
        return [self._here(word) for word in super().server()]

    def _here(self, word: str) -> str:
        if not word.endswith("/mysqld") and word != "mysqld":
            return word
        program = self.folder / "mysqld"
        if not program.is_symlink():
            program.symlink_to(word if "/" in word else str(shutil.which(word)))
        return str(program)


def test_encrypted_files(source: Server, tmp_path: Path) -> None:
    """Only their server can read them, and their size includes a header that a dump lacks."""
    known = provide()
    own = WithKeyring(known.version, known.root, known.template, tmp_path)
    ((plugins,),) = source.sql("SELECT @@plugin_dir")
    keyring = "component_keyring_file"
    (tmp_path / f"{keyring}.so").symlink_to(Path(str(plugins)) / f"{keyring}.so")
    (tmp_path / "mysqld.my").write_text(json.dumps({"components": f"file://{keyring}"}))
    keys = {"path": str(tmp_path / "keys"), "read_only": False}
    (tmp_path / f"{keyring}.cnf").write_text(json.dumps(keys))
    settings = {**OPTIONS, "plugin_dir": str(tmp_path), "binlog_encryption": "ON"}
    with Server(settings, installation=own) as encrypted:
        encrypted.sql("CREATE DATABASE d; CREATE TABLE d.t (a INT); INSERT INTO d.t VALUES (1)")
        encrypted.sql("FLUSH BINARY LOGS; INSERT INTO d.t VALUES (2)")
        with logs(encrypted) as there:
            assert len(groups(there, [whole_file(*file) for file in there.files()])) == 4


def test_another_server_is_not_read(source: Server) -> None:
    with logs(source) as there:
        name, size = there.files()[0]
        bounds = whole_file(name, size)
        with there.opened(bounds, there.origin) as contents:
            assert contents.read(0, 4)
        other = "11111111-2222-3333-4444-555555555555"
        with there.opened(bounds, other) as contents, pytest.raises(
            SourceError, match=rf"is {there.origin} now, and positions are those of {other}"
        ):  # fmt: skip
            contents.read(0, 4)


def test_an_end_that_is_none_is_an_error(source: Server) -> None:
    with logs(source) as there:
        name, size = there.files()[0]
        for end in (size - 60, size + 5):
            with pytest.raises((BinlogError, SourceError)):
                groups(there, [ByteRange(name, FIRST_EVENT, end, end, tail=Tail.WHOLE)])
