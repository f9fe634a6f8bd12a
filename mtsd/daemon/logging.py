"""The daemon's log: one record per line on standard error, for humans or as JSON.

Where systemd's journal reads it, each line begins with its priority, as sd-daemon(3) has it: so
`journalctl -p warning` finds what it should.

mtsd logs through structlog, the libraries through `logging`; both end in one handler, so all
records have the same format. Values bound in structlog's context variables (channel, worker, gtid)
are added to every record made in that context, including those of libraries.
"""

import io
import logging
import os
import sys
from collections.abc import Mapping
from functools import cache
from typing import TextIO

import structlog
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor, WrappedLogger

from mtsd.config import LogSettings
from mtsd.daemon.log_writer import LogWriter

_OURS = "mtsd"
_IN_FRONT = ("timestamp", "level", "event")
_HIGHEST = logging.CRITICAL
_PRIORITIES = {
    logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, _HIGHEST: 2,
}  # fmt: skip
"""By the highest level that has it."""
_OF_MANY_LINES = frozenset({"exception", "stack"})


def set_up_logging(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Send every record of `settings.level` and above to `stream`.

    If that is None, to standard error, by a thread of its own. Libraries' records are included from
    warnings upwards. May be called again while running, for another level or format.
    """
    into = _standard_error() if stream is None else stream
    handler = _Handler(into)
    formatter = (
        _ForJournal if _is_journal(into, os.environ) else structlog.stdlib.ProcessorFormatter
    )
    handler.setFormatter(
        formatter(
            foreign_pre_chain=_described(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendered(settings, into),
            ],
        )
    )
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    root = logging.getLogger()
    for former in root.handlers[:]:
        root.removeHandler(former)
    root.addHandler(handler)
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger(_OURS).setLevel(level)
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_described(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        # The handler does the formatting, so a cached logger does not keep an old format.
        cache_logger_on_first_use=True,
    )


class _ForJournal(structlog.stdlib.ProcessorFormatter):
    def format(self, record: logging.LogRecord) -> str:
        level = min((each for each in _PRIORITIES if record.levelno <= each), default=_HIGHEST)
        prefix = f"<{_PRIORITIES[level]}>"
        return prefix + super().format(record).replace("\n", f"\n{prefix}")


def _is_journal(stream: TextIO | LogWriter, environ: Mapping[str, str]) -> bool:
    """Return whether a stream ends in the journal: systemd.exec(5) on $JOURNAL_STREAM.

    A program that redirects it leaves the variable to what it starts.
    """
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class _Handler(logging.StreamHandler[TextIO | LogWriter]):
    def close(self) -> None:
        if isinstance(self.stream, LogWriter):
            self.stream.drain()
        super().close()


def _standard_error() -> TextIO | LogWriter:
    try:
        sys.stderr.fileno()
    except io.UnsupportedOperation:
        return sys.stderr
    return _writer(sys.stderr)


@cache
def _writer(stream: TextIO) -> LogWriter:
    return LogWriter(stream)


def _described() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _rendered(settings: LogSettings, stream: TextIO | LogWriter) -> list[Processor]:
    terminal = stream.isatty()
    if settings.format == "json" or (settings.format == "auto" and not terminal):
        return [
            # Local variables may contain passwords and rows.
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            _in_order,
            structlog.processors.JSONRenderer(),
        ]
    return [
        _on_one_line,
        structlog.dev.ConsoleRenderer(
            colors=terminal and "NO_COLOR" not in os.environ,
            exception_formatter=structlog.dev.plain_traceback,
        ),
    ]


def _in_order(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    front = {key: event.pop(key) for key in _IN_FRONT if key in event}
    return {**front, **event}


def _on_one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["event"] = " ".join(str(event.get("event", "")).splitlines())
    for key, value in event.items():
        # Names come from the servers, and some sequences move a terminal's cursor.
        if isinstance(value, str) and not value.isprintable() and key not in _OF_MANY_LINES:
            event[key] = "".join(
                char if char.isprintable() else ascii(char)[1:-1] for char in value
            )
    return event
