"""Why nothing more follows from a stream of groups."""

from mtsd.model.errors import MtsdError


class StreamClosedError(Exception):
    """`close` was called: nothing more follows."""


class SourceChangedError(MtsdError):
    """The source is another server, which has executed everything that was received.

    Reading can continue by GTID set, but the group numbers cannot.
    """

    def __init__(self, former: str, uuid: str) -> None:
        super().__init__(f"the source is now {uuid}, before it was {former}")
        self.uuid = uuid
