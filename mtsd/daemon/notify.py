"""Notifications to the service manager, after sd_notify(3) and sd_watchdog_enabled(3).

One notification is one datagram of `NAME=value` lines to the Unix socket named in `$NOTIFY_SOCKET`;
an address that starts with @ is an abstract one. Without the variable nothing is sent.
"""

import os
import socket
import time
from collections.abc import Mapping

import structlog

_log = structlog.stdlib.get_logger("mtsd.daemon.notify")

_LONGEST = 4096
"""Bytes of a datagram that the service manager reads; the rest would be lost."""

_TIMEOUT = 0.5
"""Seconds to wait for a service manager that does not read from its socket, if the notification
affects what it does next; other notifications are repeated anyway."""


class Notifier:
    """Tells the service manager how the daemon is doing. Its methods never raise.

    A notification that cannot be sent is logged once; the daemon does not depend on it.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._failed = False
        self.watchdog_interval = _watchdog_interval(environ)
        """Seconds between two calls of `watchdog`: half of what the service manager allows.
        None if it does not watch this process."""

    def ready(self) -> None:
        """Report that the start or a reload is done."""
        self._send("READY=1", _TIMEOUT)

    def reloading(self) -> None:
        """Report that the configuration is being reloaded; `ready` must follow."""
        # Type=notify-reload uses the time to match the notification to its reload.
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}", _TIMEOUT)

    def stopping(self) -> None:
        """Report that the daemon is about to exit."""
        self._send("STOPPING=1", _TIMEOUT)

    def status(self, text: str) -> None:
        """Set the line of text that `systemctl status` shows."""
        self._send("STATUS=" + " ".join(text.split()))

    def watchdog(self) -> None:
        """Report that the daemon makes progress, or has nothing to do."""
        self._send("WATCHDOG=1")

    def _send(self, text: str, timeout: float = 0.0) -> None:
        if not self._address:
            return
        data = text.encode("utf-8", "replace")[:_LONGEST].decode("utf-8", "ignore").encode()
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(timeout)
                # Only a connected socket can wait for room without polling.
                sender.connect(self._address)
                sender.send(data)
        except OSError as error:
            if not self._failed:
                self._failed = True
                _log.warning(
                    "cannot notify the service manager", socket=self._address, error=str(error)
                )


def _address(text: str) -> str:
    return "\0" + text[1:] if text.startswith("@") else text


def _watchdog_interval(environ: Mapping[str, str]) -> float | None:
    try:
        watched = int(environ.get("WATCHDOG_PID", os.getpid()))
        microseconds = int(environ.get("WATCHDOG_USEC", 0))
    except ValueError:
        _log.warning("WATCHDOG_PID or WATCHDOG_USEC is not a number: the watchdog gets no sign")
        return None
    if watched != os.getpid() or microseconds <= 0:
        return None
    return microseconds / 2 / 1_000_000
