import pytest

from mtsd.binlog.bytes.event_type import EventType
from mtsd.binlog.events.format_description import parse_format_description
from mtsd.model.errors import BinlogError
from tests.binlog.building import LENGTHS, description
from tests.binlog.recording import Recording


def test_a_real_one(recording: Recording) -> None:
    first, *others = recording.of(EventType.FORMAT_DESCRIPTION_EVENT)
    found = parse_format_description(first)
    assert found.server_version.startswith(recording.server.installation.version)
    assert (found.binlog_version, found.header_length, found.checksum_algorithm) == (4, 19, 1)
    assert found.created > 1_700_000_000
    assert found.post_header_lengths[EventType.TABLE_MAP_EVENT - 1] == 8
    # Only the file that the server started with says when.
    assert {parse_format_description(other).created for other in others} == {0}


@pytest.mark.parametrize("algorithm", [0, 1])
def test_the_algorithm_counts_not_whether_there_are_checksum_bytes(algorithm: int) -> None:
    found = parse_format_description(description(algorithm=algorithm))
    assert found.checksum_algorithm == algorithm
    assert found.post_header_lengths == LENGTHS
    assert found.server_version == "8.0.41"


@pytest.mark.parametrize("server", [b"5.6.51-log", b"10.11.6-MariaDB-log", b"9.7.4-2"])
def test_servers_that_are_read(server: bytes) -> None:
    assert parse_format_description(description(server=server)).server_version == server.decode()


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (description(version=3), "binlog version 3 is not supported"),
        (description(header=27), "headers of 27 bytes"),
        (description(server=b"5.5.62-log"), "the source is 5.5.62-log, but 5.6 or later is needed"),
        (description(server=b"4.1.9"), "5.6 or later"),
        (description(server=b"\xff\xff"), "is not UTF-8"),
        (description(server=b"none"), "'none' is not a server version"),
        (description(algorithm=2), "unknown checksum algorithm 2"),
        (description(algorithm=255), "unknown checksum algorithm 255"),
        (description(lengths=LENGTHS[:10]), "post-header lengths of 10 types only"),
        (description(lengths=b"\0\x0e" + LENGTHS[2:]), "post-header of 14 bytes for QUERY_EVENT"),
        (description()[:60], "server version of 50 bytes at 21 exceeds the end 60"),
        (description()[:78], "cut off before its checksum algorithm"),
    ],
)
def test_what_is_refused(damaged: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_format_description(damaged)
