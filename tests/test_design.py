"""The example of docs/design.md is what the code makes of docs/example/binlog.000001.

`python -m tests.test_design` prints its blocks as they have to be.
"""

import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

from mtsd.apply.position.worker_info import WorkerInfo, WorkerRowChange
from mtsd.apply.rows.bundle import binlog_statement, row_statements
from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.bytes.framing import FileFramer
from mtsd.binlog.bytes.header import HEADER_SIZE, parse_header
from mtsd.binlog.groups.grouper import Grouper
from mtsd.model.group import Group
from mtsd.model.gtid import GtidSet
from mtsd.model.low_water_mark import LowWaterMark
from mtsd.model.position import FIRST_EVENT, Position
from mtsd.schedule.done.executed_groups import ExecutedGroups, recovered
from mtsd.schedule.done.worker_row import WorkerRow, blank_row
from mtsd.schedule.limits import Limits
from mtsd.schedule.policies.database_policy import DatabasePolicy
from mtsd.schedule.scheduler import Scheduler

PAGE = Path(__file__).parents[1] / "docs" / "design.md"
LOG = PAGE.parent / "example" / "binlog.000001"
START = Position(LOG.name, FIRST_EVENT)
MARK = LowWaterMark(0, START, GtidSet())
LIMITS = Limits(8192, 1 << 26, 512, 1 << 22)


def raw_events() -> list[bytes]:
    return list(FileFramer().feed(LOG.read_bytes()))


def groups_of_file() -> list[Group]:
    grouper = Grouper(
        start=START, next_number=1, checksums=True, hold_bytes=1 << 26, chunk_bytes=1 << 20
    )
    return [item for item in grouper.groups(raw_events()) if isinstance(item, Group)]


def types_of(events: bytes) -> list[str]:
    """Return the types and lengths of events that have no checksums."""
    found = []
    while events:
        size = int.from_bytes(events[9:13], "little")
        found.append(f"{EventType(events[4]).name} ({size} bytes)")
        events = events[size:]
    return found


def event_block() -> Iterator[str]:
    raw = next(each for each in raw_events() if each[4] == EventType.WRITE_ROWS_EVENT)
    header = parse_header(raw)
    yield f"{raw[:4].hex(' '):12}  time         {header.timestamp} s since 1970"
    yield f"{raw[4:5].hex():12}  type         {header.type}, {EventType(header.type).name}"
    yield f"{raw[5:9].hex(' '):12}  server id    {header.server_id}"
    yield f"{raw[9:13].hex(' '):12}  length       {header.size}"
    yield f"{raw[13:17].hex(' '):12}  end          byte {header.log_pos} of the file"
    yield f"{raw[17:19].hex(' '):12}  flags        {header.flags}"
    yield f"{raw[HEADER_SIZE:-4].hex(' ')}"
    yield f"{'':12}  the row: not decoded on its way to the target"
    yield f"{raw[-4:].hex(' '):12}  checksum     CRC-32 of all before it"


def group_block() -> Iterator[str]:
    for group in groups_of_file():
        yield (
            f"group {group.number}: {group.kind.value}, ends at {group.end},"
            f" databases {', '.join(group.databases)}"
        )
        yield f"    GTID {group.gtid}"
        yield f"    {', '.join(EventType(event[4]).name for event in group.rows)}"


def schedule_block() -> Iterator[str]:
    policy, twin = DatabasePolicy(2), DatabasePolicy(2)
    scheduler = Scheduler(policy, 2, LIMITS, MARK, ExecutedGroups(1))
    for group in groups_of_file():
        worker, after, _ = twin.assign(group, scheduler.view)
        scheduler.add(group)
        waits = f", after={set(after)}" if after else ""
        aph = ", ".join(
            f"{name}: worker {w + 1}, {n}" for name, (w, n) in policy.aph.usage().items()
        )
        yield f"{f'group {group.number} arrives':18} Assignment(worker={worker + 1}{waits})"
        yield f"{'':18} APH  {aph}"
    first, second = (scheduler.take(worker) for worker in (0, 1))
    for worker, batch in ((1, second), (0, first), (1, ())):
        taken = batch or scheduler.take(worker)
        scheduler.commit(worker, taken)
        mark = scheduler.gaq
        done = "  ".join(
            f"{number} {'done' if mark.is_committed(number) else 'open'}" for number in (1, 2, 3)
        )
        yield f"{f'worker {worker + 1} commits {taken[0].number}':18} GAQ  {done}"
        yield f"{'':18} low-water mark {mark.number}, {mark.position}"


def rows_of_worker_2() -> tuple[WorkerRow, WorkerRow, Group]:
    _, group, _ = groups_of_file()
    before = blank_row(2, MARK, 1002)
    return before, before.advanced([group], MARK), group


def bundle_block() -> Iterator[str]:
    before, row, group = rows_of_worker_2()
    change = WorkerRowChange(WorkerInfo("mtsd", ""), row, before)
    (events,) = row_statements([group], 1 << 20, change)
    statement = binlog_statement(events).decode()
    yield f"{statement[:68]}…"
    yield f"{len(statement)} bytes of SQL, in which are"
    yield from (f"    {each}" for each in types_of(b64decode(statement[8:-1])))
    yield f"the last one sets, in worker 2's row with Token {before.token}:"
    yield f"    Master_log_pos {row.last.offset if row.last else 0}"
    yield f"    Checkpoint_seqno {row.executed.base}"
    yield f"    Checkpoint_group_bitmap 0x{row.executed.bitmap().hex()}"
    yield f"    Token {row.token}"


def restart_block() -> Iterator[str]:
    _, row, _ = rows_of_worker_2()
    executed = recovered(MARK.number, [blank_row(1, MARK).executed, row.executed])
    yield f"low-water mark {MARK.number}, executed past it {set(executed)}"
    scheduler = Scheduler(DatabasePolicy(2), 2, LIMITS, MARK, executed)
    for group in groups_of_file():
        known = scheduler.skipped
        scheduler.add(group)
        done = scheduler.skipped > known
        yield f"group {group.number}: {'skipped' if done else 'applied'}"


def blocks() -> list[str]:
    return [
        "\n".join(block()) + "\n"
        for block in (event_block, group_block, schedule_block, bundle_block, restart_block)
    ]


def test_the_example_is_what_the_code_makes_of_the_file() -> None:
    assert re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) == blocks()


if __name__ == "__main__":
    print("\n".join(blocks()))
