"""A source and a target, started side by side."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import Self

from tests.servers.mysqld import Server
from tests.servers.provision import Installation, Options


class Pair:
    """Two servers; as a context manager both start at once, and both are gone at the end."""

    def __init__(
        self,
        source_options: Options | None = None,
        target_options: Options | None = None,
        *,
        installation: Installation | None = None,
        target_installation: Installation | None = None,
    ) -> None:
        """`installation` is what both run, or the source if there is one for the target too."""
        with ExitStack() as undo:
            self.source = Server(source_options, installation=installation)
            undo.callback(self.source.close)
            self.target = Server(target_options, installation=target_installation or installation)
            undo.pop_all()

    def __enter__(self) -> Self:
        try:
            self.source.spawn()
            self.target.spawn()
            self.source.wait_ready()
            self.target.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            # What a failure has left behind is not for others.
            self.discard()
        self.close()

    def close(self) -> None:
        """Give both back, the target first: a daemon may still read from the source."""
        with ExitStack() as both:
            both.callback(self.source.close)
            self.target.close()

    def discard(self) -> None:
        """End both: what is in them now is for no other test."""
        self.source.discard()
        self.target.discard()
