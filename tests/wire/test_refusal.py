"""What a person is told of a server that refuses something."""

import errno
import os

import pytest

from mtsd.model.error_numbers import ER
from mtsd.model.errors import ServerError
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.failure import BUSY
from mtsd.wire.refusal import number_and_reason, refused, unreachable

TARGET = Endpoint("target", "127.0.0.1", 3307, "", "mtsd", "")


def said(number: int, text: str) -> ServerError:
    error = ServerError(number, "HY000", text)
    error.server = f"target {TARGET}"
    return error


@pytest.mark.parametrize("number", sorted(BUSY - {ER.SERVER_SHUTDOWN}))
def test_a_server_that_takes_no_session_now_is_named_with_what_to_do(number: int) -> None:
    told = number_and_reason(said(number, "Not now"))
    start = f"the target 127.0.0.1:3307 refuses: error {number} (HY000): Not now. "
    assert told[0] == number
    assert told[1].startswith(start)
    assert "on the target" in told[1].removeprefix(start)


def test_a_refused_login_has_its_number_and_one_full_stop() -> None:
    error = refused(TARGET, said(ER.ACCOUNT_HAS_BEEN_LOCKED, "Account is locked."))
    number, reason = number_and_reason(error)
    assert number == ER.ACCOUNT_HAS_BEEN_LOCKED
    assert "Account is locked. Unlock it" in reason


def test_a_process_that_may_open_no_more_files_says_which() -> None:
    told = unreachable(TARGET, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    assert "Too many open files: let mtsd open more files (LimitNOFILE" in told
