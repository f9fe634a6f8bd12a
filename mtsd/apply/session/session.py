"""A session on the target: its pinned state, its transactions, and the way back from statements."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from mtsd.apply.session.collations import read_collations
from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.lost_changes import lost_in_cascade, row_gone
from mtsd.apply.session.own_domain import own_domain
from mtsd.apply.session.own_log import own_log_end
from mtsd.apply.session.pinning import pin
from mtsd.apply.session.retry import ROW_GONE, insist, with_retries
from mtsd.apply.session.satellites import Collation, needs_collations
from mtsd.apply.session.session_settings import SessionSettings
from mtsd.apply.session.session_state import THREAD_ID, names_collations, thread_of_nobody
from mtsd.apply.session.statement_states import StatementStates
from mtsd.apply.session.xa import roll_back
from mtsd.apply.sql import literals
from mtsd.model.error_numbers import ER, NOT_ALLOWED
from mtsd.model.errors import ConnectionLostError, NeedsPersonError, ServerError
from mtsd.model.fault_points import FaultHook, FaultPoint, nothing
from mtsd.model.outcome.reason import Refused
from mtsd.model.step import Satellite, Statement, Step
from mtsd.model.xa_xid import XaXid
from mtsd.wire.connection import Connection
from mtsd.wire.endpoint import Endpoint
from mtsd.wire.traits import ServerTraits, read_traits
from mtsd.wire.understood import understood

NEUTRAL: Final = b"information_schema"
_GUARD: Final = b"SAVEPOINT mtsd_guard"
STATEMENTS_READ = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
"""Before a transaction with statements: under READ COMMITTED they could read different rows than
on the source."""


class TargetSession:
    """One session on the target, on which groups are applied one transaction after another.

    Every method raises ServerError after a ROLLBACK if the server returns an error, and
    ConnectionLostError if it is unknown what has become of the transaction.
    """

    def __init__(
        self,
        connection: Connection,
        settings: SessionSettings,
        traits: ServerTraits,
        reached: FaultHook,
    ) -> None:
        self.connection = connection
        self.traits = traits
        self.family: Final = TARGETS[traits.server.flavour]
        self._settings = settings
        self.reached = reached
        self.states = StatementStates(
            traits,
            connection.thread_id,
            settings.source,
            settings.sql_mode,
            rows_as_sql=settings.rows_as_sql,
        )
        self._collations: Mapping[int, Collation] = {}
        self.branch: XaXid | None = None
        """The branch of an XA transaction that is open."""
        self._left: tuple[dict[bytes, bytes], Sequence[Satellite]] | None = None
        """The state and satellites of a statement after which nothing could be set yet."""
        self._is_guarded = False
        """Whether a savepoint shows that the open transaction is still the one that was begun."""
        self.domain: int | None = None
        """MariaDB: the GTID domain of what the session writes to the binlog; None: of nothing."""
        self.sets_domain = True
        """Whether its user may set that, and has chosen it."""
        self.limits_lock_waits = False
        """Whether `limit_lock_waits` has set a limit."""
        self.has_gtids = traits.gtid_mode
        """Whether a transaction can be given a GTID: the target has them, and its user may."""
        self.changed_rows = 0
        """How many rows the statements have changed since somebody set it to 0."""

    @property
    def is_logged(self) -> bool:
        """Whether the session's changes are written to the target's own binlog."""
        return self.traits.log_bin and self._settings.binary_log

    @property
    def keeps_definers(self) -> bool:
        """See `SessionSettings`."""
        return self._settings.keeps_definers

    @classmethod
    async def open(
        cls, endpoint: Endpoint, settings: SessionSettings, *, reached: FaultHook = nothing
    ) -> "TargetSession":
        """Connect and pin the session's state.

        Raises NeedsPersonError if the user may not set what it needs.
        """
        await reached(FaultPoint.BEFORE_CONNECT_TARGET)
        connection = await Connection.open(endpoint, about=settings.about)
        try:
            async with connection.answering():
                traits = await read_traits(connection, settings.known)
                session = cls(connection, settings, traits, reached)
                await session._pin()
        except BaseException:
            connection.close()
            raise
        return session

    async def _pin(self) -> None:
        pinned = await pin(self.connection, self.states.own, binary_log=self._settings.binary_log)
        if isinstance(pinned, Refused):
            raise NeedsPersonError(str(pinned))
        self.states.leave_out(pinned.refused)
        self.has_gtids = self.traits.gtid_mode and pinned.sets_gtids
        await self._take_domain()

    async def _take_domain(self) -> None:
        """Write in a domain of one's own, if there are any and the user may set it."""
        server = self.traits.server
        wanted = own_domain(
            self._settings.gtid_domain_id,
            server.flavour,
            self.traits.server_id,
            logged=self.is_logged,
        )
        if wanted is None:
            return
        self.domain = wanted
        try:
            await self.connection.run(b"SET @@session.gtid_domain_id=%d" % wanted, 1)
        except ServerError as error:
            if error.number not in NOT_ALLOWED:
                raise
            self.sets_domain = False
            ((domain,),) = await self.connection.query(b"SELECT @@session.gtid_domain_id")
            self.domain = literals.number(domain)

    def refuse_too_large(self, steps: Sequence[Step]) -> None:
        """Raise ServerError 1153 if the target does not accept the text of a statement."""
        for step in steps:
            if isinstance(step, Statement):
                self.refuse_longer(len(step.query.statement))

    def refuse_longer(self, length: int) -> None:
        """Raise ServerError 1153 if the target does not accept a statement of so many bytes.

        The server would close the connection, which looks like a lost one.
        """
        limit = self.traits.max_allowed_packet
        if length >= limit:
            raise ServerError(
                ER.NET_PACKET_TOO_LARGE,
                "08S01",
                f"a statement of {length} bytes, its user variables included, is more than the"
                f" target accepts ({limit}): raise max_allowed_packet on the target",
            )

    async def set_up_for(self, steps: Sequence[Step]) -> None:
        """Set what a transaction of these steps needs and cannot set itself; none may be open."""
        defaults = (
            step.query.context.explicit_defaults_for_timestamp
            for step in steps
            if isinstance(step, Statement)
        )
        await self.set_timestamp_defaults(
            next((each for each in defaults if each is not None), None)
        )

    async def set_timestamp_defaults(self, explicit: bool | None) -> None:
        """Set the explicit_defaults_for_timestamp of a transaction's statements, if it is known.

        A MySQL does not set it inside a transaction; none may be open.
        """
        if change := self.states.timestamp_defaults(explicit):
            await self.connection.run(change, 1)

    async def begin_statements(self) -> None:
        """Begin a transaction of statements, which read as they did on the source."""
        await self.connection.run(STATEMENTS_READ + b";BEGIN", 2)
        await self.guard()

    async def guard(self) -> None:
        """Let `unguard` find out whether the transaction, or branch, that has begun is lost.

        A target that loses errors inside cascades rolls it back and goes on with another one (see
        docs/foreign-keys.md). Rows in BINLOG statements lose no errors.
        """
        if guarding := self.guarding():
            await self.connection.run(guarding[0], 1)

    def guarding(self) -> list[bytes]:
        """Return the statement of `guard`, to be sent after BEGIN; nothing if none is needed."""
        if not self.traits.loses_cascade_errors:
            return []
        self._is_guarded = True
        return [_GUARD]

    async def unguard(self) -> None:
        """Raise ServerError 1213 if the transaction that was guarded is lost."""
        if not self._is_guarded:
            return
        self._is_guarded = False
        try:
            await self.connection.run(b"RELEASE " + _GUARD, 1)
        except ServerError as error:
            raise lost_in_cascade(error) from error

    async def commit(self, record: Sequence[bytes]) -> None:
        """Run the statements of `record` and commit, in one packet."""
        await self.unguard()
        await self._commit([*record, b"COMMIT"])

    async def commit_left(self, record: Sequence[bytes], then: Sequence[bytes] = ()) -> None:
        """As `commit`, after returning from the state that statements have left.

        `then` is run behind the commit, which only ends the session if it fails.
        """
        if self._left is None:
            raise RuntimeError("no statement has left its state")
        back = self.states.returning(*self._left)
        release = [b"RELEASE " + _GUARD] if self._is_guarded else []
        try:
            await self._commit([*release, *back, *record, b"COMMIT"], then)
        except ServerError as error:
            raise lost_in_cascade(error) if release else error from error
        self._is_guarded = False
        self._left = None
        if then:
            await self.clean_left(then, sent=len(then))

    async def _commit(self, statements: Sequence[bytes], then: Sequence[bytes] = ()) -> None:
        await self.reached(FaultPoint.BEFORE_COMMIT)
        self.connection.send(b";".join((*statements, *then)))
        await self.reached(FaultPoint.COMMIT_SENT)
        try:
            await self.connection.receive(len(statements), more=bool(then))
        except ServerError as error:
            if error.number == ROW_GONE:
                raise row_gone(error) from error
            raise
        await self.reached(FaultPoint.AFTER_COMMIT)

    async def record(self, statements: Sequence[bytes], then: Sequence[bytes] = ()) -> None:
        """Commit mtsd's own statements in a transaction of their own, `with_retries`.

        `then` follows in the same packet, and runs only if that has committed; its answers are
        still to be received.
        """
        whole = [b"BEGIN", *statements, b"COMMIT"]
        await with_retries(self.connection, lambda: self._commit(whole, then), statements[0])

    async def undo(self, error: ServerError, *, unsure: bool = False) -> None:
        """Roll back after an error; the error gets its warnings, and whether any changes remain.

        If non-transactional tables have changed, the server warns about it: after the error
        if the statement was a transaction by itself, else after the ROLLBACK. `unsure` is what
        to assume if these warnings cannot be read because that was interrupted too.
        """
        found: list[tuple[int, str]] = []
        certain = await self._read_warnings(found)
        # Choosing a database leaves the warnings of an earlier statement.
        has_own = any(number == error.number for number, _ in found)
        kept = ER.WARNING_NOT_COMPLETE_ROLLBACK
        others = [] if has_own else [each for each in found if each[0] != kept]
        try:
            await self._roll_back()
        except ServerError:
            certain = False
            await self._roll_back()
        # Only now may anything else run, which would leave other warnings.
        certain = await self._read_warnings(found) and certain
        await self.clean_left()
        if any(number == kept for number, _ in found) or (unsure and not certain):
            error.leaves_changes = True
        # The error itself is among them, and after rows of BINLOG one that says nothing.
        said = f" {error.number}: {error.text}", f" {ER.UNKNOWN_ERROR}: Unknown error"
        texts = [error.fit(text) for number, text in found if (number, text) not in others]
        warnings = "; ".join(text for text in texts if not text.endswith(said))
        error.warnings = error.warnings or warnings

    async def rollback(self) -> None:
        """Roll back the open transaction or branch; the session's lock and state remain."""
        await self._roll_back()
        await self.clean_left()

    async def _roll_back(self) -> None:
        self._is_guarded = False
        if self.branch is None:
            await self.connection.run(b"ROLLBACK", 1)
            return
        branch, self.branch = self.branch, None
        await roll_back(self.connection, branch)

    def leave_state(self, state: dict[bytes, bytes], satellites: Sequence[Satellite]) -> None:
        """Note that statements will leave the session in that state, or on the way to it."""
        self._left = state, satellites

    @understood("target")
    async def known_collations(self, statements: Iterable[Statement]) -> Mapping[int, Collation]:
        """Return the target's collations by number, if these statements need any."""
        if not self._collations and any(
            needs_collations(each.satellites) or names_collations(each.query.context)
            for each in statements
        ):
            self._collations = await read_collations(self.connection, self.family)
            self.states.name_collations(self._collations)
        return self._collations

    async def clean_left(self, then: Sequence[bytes] = (), *, sent: int = 0) -> None:
        """Return from the state that a statement was to leave, if one has; run `then`.

        `sent`: so many statements that do the same are sent already. If one fails, all is run anew.
        Raises ConnectionLostError: nothing else may run in that state.
        """
        left, self._left = self._left, None
        if left is None and not then:
            return
        sets = [*(self.states.returning(*left) if left is not None else ()), *then]
        if sent:
            with suppress(ServerError):
                await self.connection.receive(sent)
                return
        try:
            await insist(self.connection, lambda: self.connection.run(b";".join(sets), len(sets)))
        except ServerError as error:
            self.connection.close()
            raise ConnectionLostError(
                "target", f"its session cannot return from the state of a statement: {error}"
            ) from error

    @property
    def lock_wait_s(self) -> bytes:
        """How long the session usually waits for a lock of a row, in seconds."""
        return self.states.own[b"innodb_lock_wait_timeout"]

    async def limit_lock_waits(self, seconds: int | None) -> None:
        """Let rows and tables wait for a lock at most so long; None: as long as is pinned."""
        self.limits_lock_waits = seconds is not None
        await self.connection.run(self.lock_waits(seconds), 1)

    def lock_waits(self, seconds: int | None) -> bytes:
        """Return the statement for `limit_lock_waits`."""
        if seconds is None:
            limits = self.lock_wait_s, self.states.own[b"lock_wait_timeout"]
        else:
            limits = b"%d" % seconds, b"%d" % seconds
        return b"SET @@session.innodb_lock_wait_timeout=%b,@@session.lock_wait_timeout=%b" % limits

    async def set_gtid(self, gtid: str) -> None:
        """Set the GTID of the next transaction; "" returns to automatic ones."""
        if self.has_gtids:
            await insist(self.connection, lambda: self.connection.run(next_gtid(gtid), 1))

    @property
    def can_imitate(self) -> bool:
        """Whether it can have the thread ids of the source's sessions, as their statements need."""
        return THREAD_ID in self.states.own

    def thread_of_its_own(self) -> int:
        """Return a thread id for a definition that no other has in the target's binlog from now on.

        That of the session itself, if it can have no other.
        """
        if not self.can_imitate:
            return self.connection.thread_id
        return thread_of_nobody()

    @property
    def thread(self) -> int:
        """The thread id under which the target logs rows of this session, and of no other one."""
        return int(self.states.own.get(THREAD_ID, self.connection.thread_id))

    @understood("target")
    async def log_position(self) -> tuple[str, int]:
        """Return the end of the target's own binlog, if it contains all that the session does.

        ("", 0) if it does not, or if the user may not query it.
        """
        return await own_log_end(self.connection, self.traits) if self.is_logged else ("", 0)

    @understood("target")
    async def _read_warnings(self, found: list[tuple[int, str]]) -> bool:
        """Add number and text of each warning of the last statement; return whether that worked."""
        try:
            rows = await self.connection.query(b"SHOW WARNINGS")
        except ServerError:
            return False
        for level, number, text in rows:
            each = literals.number(number), f"{level!s} {number!s}: {text!s}"
            if each not in found:
                found.append(each)
        return True


def next_gtid(gtid: str) -> bytes:
    """Return the statement that sets the next transaction's GTID; "": an automatic one."""
    return b"SET @@session.gtid_next=" + literals.text(gtid or "AUTOMATIC")
