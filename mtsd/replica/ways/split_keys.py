"""The target's keys, as a transaction that is split needs them."""

from mtsd.apply.tables.key_definitions import KeyDefinitions, read_key_definitions
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import CurrentEndpoint
from mtsd.wire.neutral_session import make_neutral
from mtsd.wire.traits import ServerTraits


class SplitKeys:
    """Reads keys when they are needed, on a connection of its own, and remembers them."""

    def __init__(self, current: CurrentEndpoint, traits: ServerTraits) -> None:
        self._current = current
        self._traits = traits
        self._known = KeyDefinitions(frozenset(), {}, ())
        self._asked: frozenset[str] = frozenset()
        self._definitions = 0

    async def of(self, databases: frozenset[str], definitions: int) -> KeyDefinitions:
        """Return the keys of databases, and of all that were asked for before.

        They are read anew when `definitions`, the number of those applied, is another one. Raises
        ServerError, ConnectionLostError.
        """
        if definitions != self._definitions:
            self._asked = frozenset()
        if not databases <= self._asked:
            wanted = databases | self._asked
            connection = await self.connect()
            try:
                self._known = await read_key_definitions(
                    connection, self._traits.server.flavour, wanted, fold_case=self.fold_case
                )
            finally:
                connection.close()
            self._asked = wanted
            self._definitions = definitions
        return self._known

    async def connect(self) -> Connection:
        """Return a connection for questions. Raises ServerError, ConnectionLostError."""
        connection = await Connection.open(self._current.endpoint)
        try:
            await make_neutral(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def fold_case(self) -> bool:
        """Whether names of databases and tables are in lower case on the target."""
        return self._traits.lower_case_table_names

    @property
    def loses_cascade_errors(self) -> bool:
        """See `ServerTraits`."""
        return self._traits.loses_cascade_errors
