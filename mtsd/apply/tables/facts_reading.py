"""Reads what tables of the target are like: the one reader for all questions about rows.

A table is read by SHOW CREATE TABLE, which a server answers in a tenth of a millisecond; each view
of the information schema takes up to ten times as long, and rows may be waiting. What the statement
does not say is which other tables' foreign keys lead here, and where their cascades lead from here.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from mtsd.apply.session.family import TARGETS
from mtsd.apply.session.retry import worth_a_retry
from mtsd.apply.sql import literals
from mtsd.apply.tables.facts import Name, TableFacts
from mtsd.apply.tables.shown_table import ShownTables
from mtsd.model.errors import ServerError
from mtsd.model.names import folded
from mtsd.model.server import Flavour
from mtsd.wire.connection import Connection
from mtsd.wire.exchange import Row
from mtsd.wire.understood import understood

Setting = tuple[bytes, bytes]
"""The statement that sets a state of the session, and the one that leads back; b"": none."""
NO_SETTING: Final[Setting] = (b"", b"")
_REFERRING: Final = (
    b"SELECT DISTINCT unique_constraint_schema,referenced_table_name,constraint_schema,table_name,"
    b"update_rule NOT IN ('NO ACTION','RESTRICT') OR delete_rule NOT IN ('NO ACTION','RESTRICT')"
    b" FROM information_schema.referential_constraints"
    b" WHERE unique_constraint_catalog='def'"
    b" AND (unique_constraint_schema,referenced_table_name) IN (%b)"
)
"""With the catalog, MySQL finds them by an index; otherwise it reads all foreign keys."""


class FactsReader:
    """Reads them for the whole daemon, from a target of this family."""

    __slots__ = ("_cascades", "_reached", "_tables")

    def __init__(self, flavour: Flavour) -> None:
        # Where keys cannot depend on the session, a cascade computes nothing that does.
        self._cascades = TARGETS[flavour].cascades_compute
        self._tables = ShownTables()
        self._reached: dict[Name, frozenset[Name]] = {}
        """Where cascades have led from tables, if anywhere, when these were last read."""

    @understood("target")
    async def read(
        self, connection: Connection, names: Collection[Name], state: Setting = NO_SETTING
    ) -> dict[Name, TableFacts]:
        """Return what these tables are like; those are missing that the target lacks, or hides.

        The session is to have its pinned state, and nothing in flight. `state` is that of the rows
        that come next: the statement opens the table, and some expressions keep the state that they
        are opened in for whoever uses the open table next (MySQL: a difference of unsigned numbers,
        the name of a month). Raises ServerError, ConnectionLostError.
        """
        facts: dict[Name, TableFacts] = {}
        children: dict[Name, set[Name]] = {}
        parents: set[Name] = set()
        asked: set[Name] = set()
        # Otherwise each step of a chain of cascades waits for the answer to the one before.
        left = set(names).union(*(self._reached.get(name, ()) for name in names))
        while left:
            asked |= left
            tables, referring = await self._read(connection, sorted(left), state)
            facts |= tables
            for parent, child, cascades in referring:
                parents.add(_folded(parent))
                if cascades:
                    children.setdefault(_folded(parent), set()).add(child)
            left = set().union(*children.values()) - asked
        return {
            name: replace(
                facts[name],
                is_referred=_folded(name) in parents,
                reached=self._reached_from(name, facts, children),
            )
            for name in names
            if name in facts
        }

    async def _read(
        self, connection: Connection, names: Sequence[Name], state: Setting
    ) -> tuple[dict[Name, TableFacts], Iterable[tuple[Name, Name, bool]]]:
        """Return those of the tables that are there, and which tables refer to them.

        Of each that does, also whether its foreign key cascades.
        """
        shows = [*map(_show, names)]
        asked = [_REFERRING % literals.tables(names)] if self._cascades else []
        try:
            shown, answers = await _in_state(connection, state, shows, asked)
        except ServerError as error:
            if worth_a_retry(error):
                raise
            # One of the tables is not there, and the server has stopped at that.
            shown = [await _shown(connection, state, show) for show in shows]
            answers = [await connection.query(each) for each in asked]
        tables = {
            name: facts
            for name, rows in zip(names, shown, strict=True)
            if rows and (facts := self._tables.of(name, str(rows[0][1]))) is not None
        }
        rules = [*chain.from_iterable(answers)]
        return tables, [((str(a), str(b)), (str(c), str(d)), bool(e)) for a, b, c, d, e in rules]

    def _reached_from(
        self,
        name: Name,
        facts: Mapping[Name, TableFacts],
        children: Mapping[Name, Collection[Name]],
    ) -> tuple[TableFacts, ...]:
        """Return the tables that cascades lead to from one, and remember their names."""
        reached = _reached(name, children)
        if reached:
            self._reached[name] = reached
        else:
            self._reached.pop(name, None)
        return tuple(facts[each] for each in sorted(reached) if each in facts)


async def _in_state(
    connection: Connection, state: Setting, inside: Sequence[bytes], after: Sequence[bytes] = ()
) -> tuple[list[list[Row]], list[list[Row]]]:
    """Return the answers to what is asked in that state, and after it; the session is back then."""
    before, back = ([each] if each else [] for each in state)
    try:
        answers = await connection.query_each([*before, *inside, *back, *after])
    except ServerError:
        for statement in back:
            await connection.run(statement, 1)
        raise
    at = len(before)
    return answers[at : at + len(inside)], answers[len(answers) - len(after) :]


async def _shown(connection: Connection, state: Setting, show: bytes) -> list[Row]:
    try:
        ((rows,), _) = await _in_state(connection, state, [show])
    except ServerError as error:
        if worth_a_retry(error):
            raise
        return []
    return rows


def _show(name: Name) -> bytes:
    database, table = name
    return b"SHOW CREATE TABLE %b.%b" % (literals.quoted(database), literals.quoted(table))


def _reached(name: Name, children: Mapping[Name, Collection[Name]]) -> frozenset[Name]:
    reached: set[Name] = set()
    beyond = set(children.get(_folded(name), ()))
    while beyond:
        reached |= beyond
        beyond = {child for each in beyond for child in children.get(_folded(each), ())} - reached
    return frozenset(reached)


def _folded(name: Name) -> Name:
    database, table = name
    return folded(database), folded(table)
