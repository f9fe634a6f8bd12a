"""The rules against the flow charts of the MySQL manual, and against what they mean."""

from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtsd.config import FilterSettings, Settings
from mtsd.filter.channels import meeting
from mtsd.filter.filter import Filter, Table
from mtsd.filter.rules import Rules
from mtsd.filter.wildcards import escaped, is_everything, literal, matches, overlap
from mtsd.model.server import Flavour, ServerVersion, Version
from mtsd.replica.core.filters import filter_of

DATABASES = ("a", "b", "ab")
NAMES = ("t", "u")
TABLES = [(database, table) for database in DATABASES for table in NAMES]


def like(pattern: str, name: str) -> bool:
    """Return what LIKE says, character by character."""
    if not pattern:
        return not name
    if pattern[0] == "%":
        return any(like(pattern[1:], name[at:]) for at in range(len(name) + 1))
    if pattern[0] == "\\" and len(pattern) > 1:
        return name[:1] == pattern[1] and like(pattern[2:], name[1:])
    return bool(name) and pattern[0] in ("_", name[0]) and like(pattern[1:], name[1:])


patterns = st.text("ab%_\\", max_size=6)


@given(patterns, st.text("ab%_\\", max_size=5))
def test_patterns_are_those_of_like(pattern: str, name: str) -> None:
    assert matches(pattern, name) == like(pattern, name)
    only = literal(pattern)
    assert only is None or matches(pattern, name) == (name == only)
    assert not is_everything(pattern) or matches(pattern, name)
    assert matches(escaped(name), name)
    assert literal(escaped(name)) == name


def test_every_overlap_of_short_patterns() -> None:
    texts = ["".join(each) for size in range(4) for each in product("ab%_", repeat=size)]
    names = ["".join(each) for size in range(6) for each in product("ab", repeat=size)]
    described = {text: {name for name in names if like(text, name)} for text in texts}
    for one, other in combinations(texts, 2):
        assert overlap(one, other) == bool(described[one] & described[other]), (one, other)


def database_level(rules: Rules, database: str) -> bool:
    """Evaluate the rules for databases, step by step as in the manual's chart."""
    if rules.do_db:
        return database in rules.do_db
    if rules.ignore_db:
        return database not in rules.ignore_db
    return True


def table_level(rules: Rules, tables: list[Table]) -> bool:
    """Evaluate the rules for tables, step by step as in the manual's chart."""
    if not (rules.do_table or rules.ignore_table or rules.wild_do_table or rules.wild_ignore_table):
        return True
    for database, table in tables:
        name = f"{database}.{table}"
        if name in rules.do_table:
            return True
        if name in rules.ignore_table:
            return False
        if any(like(pattern, name) for pattern in rules.wild_do_table):
            return True
        if any(like(pattern, name) for pattern in rules.wild_ignore_table):
            return False
    return bool(tables) and not (rules.do_table or rules.wild_do_table)


some_tables = st.lists(st.sampled_from([".".join(table) for table in TABLES]), max_size=2)
some_patterns = st.lists(
    st.sampled_from(["a.%", "a%.t", "_.u", "%.%", "b.t", "ab.%", "a.t%", "%b._", "%\\_b.%"]),
    max_size=2,
)
some_databases = st.lists(st.sampled_from(DATABASES), max_size=2, unique=True)
some_names = st.lists(
    st.tuples(st.sampled_from(DATABASES), st.sampled_from(DATABASES)),
    max_size=2,
    unique_by=lambda pair: pair[0],
)
all_rules = st.builds(
    Rules,
    do_db=some_databases.map(tuple),
    ignore_db=some_databases.map(tuple),
    do_table=some_tables.map(tuple),
    ignore_table=some_tables.map(tuple),
    wild_do_table=some_patterns.map(tuple),
    wild_ignore_table=some_patterns.map(tuple),
    rewrite_db=some_names.map(tuple),
)


@given(all_rules, st.lists(st.sampled_from(TABLES), max_size=3))
@settings(max_examples=150)
def test_the_rules_are_the_manuals(rules: Rules, tables: list[Table]) -> None:
    found = Filter(rules)
    names = dict(rules.rewrite_db)
    for database in DATABASES:
        assert found.passes_database(database) == database_level(rules, database)
        for table in NAMES:
            name = names.get(database, database)
            passes = database_level(rules, name) and table_level(rules, [(name, table)])
            assert found.row_database(database, table) == (name if passes else None)
    if rules.on_tables:
        assert found.passes_tables(tables) == table_level(rules, tables)


@given(all_rules, st.lists(st.sampled_from(TABLES), min_size=1, max_size=3))
@settings(max_examples=150)
def test_what_does_not_depend_on_the_table_is_so_for_each(
    rules: Rules, tables: list[Table]
) -> None:
    found = Filter(rules)
    some = found.passes_any_of(tables)
    if some is not None and rules.on_tables:
        for size in range(1, len(tables) + 1):
            for part in combinations(tables, size):
                assert table_level(rules, list(part)) == some
    for database in DATABASES:
        whole = found.passes_any_in(database)
        if whole is not None:
            assert {found.passes_tables([(database, name)]) for name in (*NAMES, "z")} == {whole}


@pytest.mark.parametrize(
    ("rules", "passes"),
    [
        (Rules(wild_ignore_table=("%\\_test.%",)), True),
        (Rules(do_db=("a",), wild_ignore_table=("%\\_test.%", "b.%")), True),
        (Rules(wild_do_table=("a.t%", "a.%")), True),
        (Rules(do_table=("a.t",), wild_do_table=("a.%",)), True),
        (Rules(ignore_table=("a.t",), wild_ignore_table=("a.%",)), False),
        (Rules(wild_do_table=("b.%",)), False),
        (Rules(wild_do_table=("a.t%", "b.%")), None),
        (Rules(wild_ignore_table=("a.t%",)), None),
        (Rules(do_table=("a.t",), wild_ignore_table=("a.%",)), None),
        # A table `x_test.y` of database a would pass.
        (Rules(wild_do_table=("%\\_test.%",)), None),
    ],
)
def test_what_is_known_of_an_unknown_table(rules: Rules, passes: bool | None) -> None:
    assert Filter(rules).passes_any_in("a") is passes


@pytest.mark.parametrize(
    ("rules", "database", "of_mysql", "of_mariadb"),
    [
        (Rules(do_db=("d",), wild_ignore_table=("d.%",)), "d", True, False),
        (Rules(ignore_db=("b",), wild_do_table=("a.%",)), "d", True, False),
        (Rules(ignore_db=("x",), wild_ignore_table=("b.%",)), "b", True, False),
        (Rules(rewrite_db=(("a", "x"),), wild_ignore_table=("x.%",)), "a", False, True),
        (Rules(rewrite_db=(("a", "x"),), do_db=("x",)), "a", True, False),
        (Rules(rewrite_db=(("a", "x"),), ignore_db=("a",)), "a", True, False),
        (Rules(rewrite_db=(("a", "x"),), wild_do_table=("x.%",)), "a", True, False),
        (Rules(do_db=("d",)), "e", False, False),
        (Rules(wild_ignore_table=("d.%",)), "d", False, False),
    ],
)
def test_definitions_of_databases_by_family(
    rules: Rules, database: str, *, of_mysql: bool, of_mariadb: bool
) -> None:
    assert Filter(rules, one_level=True).passes_definition(database) == of_mysql
    assert Filter(rules).passes_definition(database) == of_mariadb


@pytest.mark.parametrize(
    ("family", "version", "refuses"),
    [
        (Flavour.MARIADB, (11, 8, 0), True),
        (Flavour.MYSQL, (8, 0, 17), True),
        (Flavour.MYSQL, (8, 0, 18), False),
    ],
)
def test_rows_of_system_schemas_are_refused_where_nobody_asks_for_grants(
    family: Flavour, version: Version, refuses: bool
) -> None:
    server = ServerVersion(family, version)
    by_default = filter_of(Settings(), fold_case=False, target=server)
    assert by_default.refuses_rows("mysql", "user") is refuses
    assert by_default.refuses_rows("shop", "user") is False
    trusting = Settings(filter=FilterSettings(system_schemas="replicate"))
    replicated = filter_of(trusting, fold_case=False, target=server)
    assert replicated.row_database("mysql", "user") == "mysql"


@given(all_rules)
def test_rows_are_applied_only_where_they_may_be(rules: Rules) -> None:
    found = Filter(rules)
    changed = {
        (name, table)
        for database in (*DATABASES, "z")
        for table in NAMES
        if (name := found.row_database(database, table)) is not None
    }
    for database in (*DATABASES, "z"):
        for table in NAMES:
            if (database, table) in changed:
                assert found.may_change(database, table)
            elif database in (*DATABASES, "z"):
                assert not found.may_change(database, table) or database in {
                    target for _, target in rules.rewrite_db
                }


@given(all_rules)
def test_rules_are_stored_as_they_are(rules: Rules) -> None:
    assert Rules.parse(rules.text()) == rules


@pytest.mark.parametrize("text", ["", "[]", '{"do": ["a"]}', "1"])
def test_other_text_is_no_rules(text: str) -> None:
    with pytest.raises(ValueError, match=r"rules|Expecting"):
        Rules.parse(text)


def test_names_without_regard_to_case() -> None:
    rules = Rules(
        do_db=("A", "x"),
        ignore_table=("a.T",),
        wild_ignore_table=("A.U%",),
        rewrite_db=(("B", "x"),),
    )
    folded = Filter(rules, fold_case=True)
    assert folded.row_database("a", "v") == "a"
    assert folded.row_database("b", "v") == "x"
    assert folded.row_database("a", "t") is None
    assert folded.row_database("A", "Ux") is None
    exact = Filter(rules)
    assert exact.row_database("a", "v") is None
    assert exact.row_database("A", "t") == "A"


def test_the_position_schema_is_never_replicated() -> None:
    found = Filter(Rules(do_db=("m",), rewrite_db=(("m", "x"),)), position_schema="m")
    assert found.row_database("m", "t") is None


@given(all_rules, all_rules)
@settings(max_examples=200)
def test_channels_that_do_not_meet_share_no_database(one: Rules, other: Rules) -> None:
    met = meeting(one, other)
    assert (met is None) == (meeting(other, one) is None)
    first, second = Filter(one), Filter(other)
    places: list[set[str]] = []
    for found in (first, second):
        reached = {
            (database, name)
            for database in DATABASES
            for table in NAMES
            if (name := found.row_database(database, table)) is not None
        }
        places += [{source for source, _ in reached}, {target for _, target in reached}]
    if met is None:
        assert not places[0] & places[2]
        assert not places[1] & places[3]


@pytest.mark.parametrize(
    ("one", "other", "database"),
    [
        (Rules(), Rules(), "%"),
        (Rules(), Rules(do_db=("a",)), "a"),
        (Rules(), Rules(wild_do_table=("shop%.%",)), "shop%"),
        (Rules(do_db=("a",)), Rules(do_db=("b", "c")), None),
        (Rules(do_db=("a",)), Rules(ignore_db=("a",)), None),
        (Rules(do_db=("a", "b")), Rules(ignore_db=("a",)), "b"),
        (Rules(ignore_db=("a",)), Rules(ignore_db=("b",)), "%"),
        (Rules(wild_do_table=("shop\\_1%.%",)), Rules(wild_do_table=("shop\\_2%.%",)), None),
        (Rules(wild_do_table=("shop_1%.%",)), Rules(wild_do_table=("shop%2.%",)), "shop_1%"),
        (Rules(wild_do_table=("shop%.%",)), Rules(do_db=("office",)), None),
        (Rules(wild_ignore_table=("a.%",)), Rules(do_db=("a",)), None),
        (Rules(do_table=("a.t",)), Rules(do_table=("a.u",)), "a"),
        (Rules(do_db=("a",)), Rules(rewrite_db=(("a", "x"),), do_db=("x",)), "a"),
        (Rules(do_db=("x",)), Rules(rewrite_db=(("a", "x"),), do_db=("x",)), "x"),
        (
            Rules(rewrite_db=(("a", "x"),), do_db=("x",)),
            Rules(rewrite_db=(("b", "y"),), do_db=("y",)),
            None,
        ),
    ],
)
def test_meeting(one: Rules, other: Rules, database: str | None) -> None:
    assert meeting(one, other) == database


def test_the_owners_of_a_database() -> None:
    others = {
        "two": Filter(Rules(do_db=("b",))),
        "three": Filter(Rules(wild_do_table=("c%.t",))),
    }
    found = Filter(Rules(do_db=("a",)), position_schema="cm", others=others)
    assert found.owners("a") == ()
    assert found.owners("b") == ("two",)
    assert found.owners("c1") == ("three",)
    assert found.owners("cm") == ()


def test_rules_for_tables_of_a_mariadb_ignore_case() -> None:
    rules = Rules(ignore_db=("B",), do_table=("a.T",), wild_do_table=("C.%",))
    folded = Filter(rules, fold_tables=True)
    assert folded.row_database("a", "t") == "a"
    assert folded.row_database("c", "u") == "c"
    assert folded.row_database("a", "u") is None
    assert folded.passes_definition("c")
    assert folded.passes_any_in("c")
    assert folded.passes_database("b")
    assert not folded.passes_database("B")
