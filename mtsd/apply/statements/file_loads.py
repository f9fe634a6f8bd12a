"""LOAD DATA statements, each with the file that came before it, on one session."""

from typing import Final

from mtsd.apply.session.aside import aside
from mtsd.apply.session.session import TargetSession
from mtsd.apply.statements.load_files import LoadFiles
from mtsd.apply.statements.routine_tables import run_with_routines
from mtsd.apply.statements.session_tables import SessionTables
from mtsd.binlog.events.load_data import may_mean_backslashes, sent_by_client
from mtsd.binlog.sql.default_database import without_default_database
from mtsd.binlog.sql.temporary_tables import names_one
from mtsd.model.errors import NotSupportedError
from mtsd.model.step import Duplicates, FromFile, Statement
from mtsd.wire.exchange import LoadCounts

_SAVEPOINT: Final = b"SAVEPOINT `mtsd load data`"


class FileLoads:
    """Applies the LOAD DATA statements of one group after another."""

    def __init__(self, session: TargetSession, temporary: SessionTables) -> None:
        """`temporary` are the temporary tables that the session has."""
        self._session = session
        self._temporary = temporary
        self._files = LoadFiles()
        self.unprotected = False
        """Whether what is being applied cannot be rolled back."""

    def start_over(self, *, unprotected: bool = False) -> None:
        """Forget the files of the last group: another one begins."""
        self._files.clear()
        self.unprotected = unprotected

    async def take(self, event: bytes) -> None:
        """Process an event of a file. Raises as `LoadFiles.take` does."""
        await self._files.take(event)

    async def run(self, statement: Statement, file: FromFile) -> None:
        """Run a LOAD DATA with its file.

        A server ignores errors in rows that a client sends, unless they replace others. So rows
        that must not be left out or altered are sent to be ignored, which tells of every duplicate;
        and if there are warnings, which may be errors (of keys and constraints also where the SQL
        mode is not strict), all over to replace, which then has nothing to replace. What cannot be
        rolled back is sent only to replace: a temporary table may be so, whatever others are.

        Raises ServerError, NotSupportedError, ConnectionLostError.
        """
        if statement.query.error_code:
            raise NotSupportedError(
                "a LOAD DATA that failed on the source with error"
                f" {statement.query.error_code} after a part of its rows"
            )
        query = statement.query
        size = len(query.statement)
        if not query.database and await aside(
            size,
            lambda: without_default_database(query.text) != query.statement,
        ):
            raise NotSupportedError(
                "a LOAD DATA with DATABASE() in a session without a default database"
            )
        may_mean = await aside(size, lambda: may_mean_backslashes(query, file))
        if may_mean and self._files.has_backslashes(file.file_id):
            raise NotSupportedError(
                "a LOAD DATA with the SQL mode NO_BACKSLASH_ESCAPES and with backslashes in its"
                " file: the source does not log whether they are escapes there (ESCAPED BY '\\') or"
                " ordinary characters (no ESCAPED BY). With ESCAPED BY '', or with binlog_format ="
                " ROW, it does"
            )
        duplicates = file.duplicates
        if duplicates is not Duplicates.ERROR:
            await self._send(statement, file, duplicates)
        elif self.unprotected or await aside(
            size, lambda: names_one(self._temporary.of(query.thread_id), query)
        ):
            await self._send(statement, file, Duplicates.REPLACE)
        else:
            await self._session.connection.run(_SAVEPOINT, 1)
            loaded = await self._send(statement, file, Duplicates.ERROR)
            if loaded.warnings:
                await self._session.connection.run(b"ROLLBACK TO " + _SAVEPOINT, 1)
                await self._send(statement, file, Duplicates.REPLACE)
        # No other statement has it, and a transaction may have any number of them. One that is
        # applied again brings all its files again.
        self._files.forget(file.file_id)

    async def _send(
        self, statement: Statement, file: FromFile, duplicates: Duplicates
    ) -> LoadCounts:
        query = statement.query
        text = await aside(len(query.statement), lambda: sent_by_client(query, file, duplicates))
        pieces = self._files.pieces(file.file_id)
        known = self._temporary.of(query.thread_id)
        loaded = await run_with_routines(self._session, statement, text, known, file=pieces)
        if loaded is None:
            raise TypeError("LOAD DATA without counts")
        return loaded
