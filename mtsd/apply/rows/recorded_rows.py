"""A packet of rows of which some cannot be rolled back: with the records of these in front.

Such rows and the worker's row are one statement, where the server takes that. One that enforces
GTID consistency does not (error 1785): there they are two. With A and C of tables without
transactions, and B of others:

    the records of A and C | A, row | B, row | C, row
    the records of A and C | A | row | B, row | C | row
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from mtsd.apply.position.worker_info import WorkerInfo, WorkerRowChange
from mtsd.apply.rows.bundle import Bundle, Command, binlog_statement, row_statements
from mtsd.schedule.batches.in_flight import Packet


@dataclass(frozen=True, slots=True)
class RecordedPacket:
    """What is sent, and how many statements that are.

    `answers`, of each transaction: of its rows, and of the worker's row if that is apart, else 0.
    """

    bundle: Bundle
    answers: tuple[tuple[int, int], ...]


def recorded_packet(
    packet: Packet,
    bundle: Bundle,
    lasting: AbstractSet[int],
    note: bytes,
    workers: WorkerInfo,
    *,
    apart: bool,
) -> RecordedPacket:
    """Return what to send for a packet whose bundle `is_single_statements`.

    `lasting` are the groups that cannot be rolled back, each a transaction, and `note` records
    them. `apart`: the worker's row is a statement of its own.
    """
    (command,) = bundle.commands
    # No statement beside them has a semicolon in it, and base64 has none.
    single = command.sql.split(b";")
    statements = [note]
    answers: list[tuple[int, int]] = []
    for transaction, whole in zip(packet.transactions, single, strict=True):
        rows, place = [whole], []
        if apart and transaction.groups[0].number in lasting:
            change = WorkerRowChange(workers, transaction.row, transaction.before)
            events = row_statements(transaction.groups, len(command.sql))
            rows = [binlog_statement(each) for each in events]
            last = transaction.groups[-1].rows[-1]
            place = [binlog_statement(b"".join(change.events(last, 0)))]
        statements += (*rows, *place)
        answers.append((len(rows), len(place)))
    whole_command = Command(b";".join(statements), len(statements))
    return RecordedPacket(replace(bundle, commands=(whole_command,)), tuple(answers))
