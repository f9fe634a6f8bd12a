"""The file beside the status socket that says how a daemon ended which could not tell the target.

It is there from a daemon's start on, empty: so what a killed one leaves is not taken for the end of
the one before it, and a full disk has room for it. A daemon that has told the target why it stops
removes it.
"""

import json
from pathlib import Path

from mtsd.model.outcome.last_stop import LastStop, StopNote


class StopFile:
    """The file of the daemon that answers on `socket`."""

    def __init__(self, socket: Path) -> None:
        self.path = socket.with_name(f"{socket.name}.stop")

    def begin(self) -> None:
        """Note that a daemon begins now. Raises OSError."""
        self._write("")

    def end(self, stop: LastStop) -> None:
        """Note how it has ended. Raises OSError."""
        self._write(json.dumps({
            "time": stop.time, "graceful": stop.graceful, "text": stop.text,
            "number": stop.number, "group": stop.group,
        }))  # fmt: skip

    def clear(self) -> None:
        """Remove it: the target has been told. Raises OSError."""
        self.path.unlink(missing_ok=True)

    def read(self) -> StopNote | None:
        """Return what it says; None if there is none, or if it cannot be read."""
        try:
            text = self.path.read_text(encoding="utf-8")
            if not text:
                return StopNote(self.path.stat().st_mtime, None)
            document = json.loads(text)
            time = float(document["time"])
            stop = LastStop(
                time, bool(document["graceful"]), str(document["text"]), int(document["number"]),
                int(document["group"]),
            )  # fmt: skip
            return StopNote(time, stop)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _write(self, text: str) -> None:
        whole = self.path.with_name(f"{self.path.name}.new")
        whole.unlink(missing_ok=True)
        whole.touch(mode=0o600)
        whole.write_text(text, encoding="utf-8")
        whole.replace(self.path)
