"""Writes the log in a thread of its own: whoever logs does not wait for what takes the log.

Standard error may be a pipe that nobody empties, a service manager that hangs, or a file on a disk
that stands still. A write to it stops the thread that writes, and in the event loop that would be
the whole replica, with its status socket.
"""

import os
import select
import signal
import threading
from collections import deque
from typing import TextIO

import structlog

_log = structlog.stdlib.get_logger(__name__)

_MAX_HELD = 10_000
"""Records that wait to be written; later ones are lost, and counted."""
_TIMEOUT_S = 0.2
"""How long a record is waited for, so that mostly it is written before anything follows it."""
_LAST_CHANCE_S = 1.0
"""How long the end of the process waits for the records that are not written yet."""


class LogWriter:
    """A stream for text, of whole records, that ends up in `stream`.

    `stream` is one with a file descriptor, which is written to past the stream's own buffer: a
    thread that hangs there would hold the lock that Python takes on that buffer at its end.
    """

    def __init__(self, stream: TextIO) -> None:
        self._descriptor = stream.fileno()
        self._encoding = stream.encoding
        self._terminal = stream.isatty()
        self._records: deque[str] = deque()
        self._changed = threading.Condition()
        self._writing = False
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, record: str) -> None:
        """Take a record and write it; soon, where those before it are not written yet."""
        with self._changed:
            if len(self._records) >= _MAX_HELD:
                self._lost += 1
                return
            is_late = not self._is_idle()
            self._records.append(record)
            self._changed.notify_all()
            if not is_late and threading.current_thread() is not self._thread:
                self._changed.wait_for(self._is_idle, _TIMEOUT_S)

    def flush(self) -> None:
        """Do nothing: every record is written as soon as it can be."""

    def fileno(self) -> int:
        """Return the stream's file descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Tell whether the stream is a terminal."""
        return self._terminal

    def drain(self) -> None:
        """Wait until every record is written, but not for long."""
        with self._changed:
            self._changed.wait_for(self._is_idle, _LAST_CHANCE_S)

    def _is_idle(self) -> bool:
        return not (self._records or self._writing)

    def _run(self) -> None:
        # Signals are for the thread of the event loop.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._records)
                text = "".join(self._records)
                self._records.clear()
                lost, self._lost = self._lost, 0
                self._writing = True
            self._write(text.encode(self._encoding, "backslashreplace"))
            with self._changed:
                self._writing = False
                self._changed.notify_all()
            if lost:
                _log.warning("log records are lost: they were not taken in time", records=lost)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                select.select((), (self._descriptor,), ())
            except OSError:
                # Whoever took the log is gone: there is nowhere to say so.
                return
