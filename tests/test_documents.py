"""The pages for people: each is in the index, and what they link to is there."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
DOCS = PROJECT / "docs"
INDEX = DOCS / "README.md"
PAGES = sorted({*DOCS.glob("*.md"), *PROJECT.glob("*.md")})
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def links_of(page: Path) -> list[str]:
    """Return where a page links to, other than to the web."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    return [link for link in _LINK.findall(text) if "://" not in link]


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page: its headings as GitHub spells them, and its own."""
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    spelled = (re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings)
    return {*spelled, *re.findall(r'<a id="([^"]+)">', text)}


def test_every_page_is_in_the_index() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in links_of(INDEX)}
    assert set(DOCS.glob("*.md")) - {INDEX} <= linked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    """Those of this tree, from its root; a pattern names several."""
    named = re.findall(
        r"`((?:mtsd|tests|benchmarks|scripts|docs|systemd|docker)/[\w./@-]+)`",
        page.read_text("utf-8"),
    )
    assert [name for name in named if not (PROJECT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    lost = []
    for link in links_of(page):
        name, _, anchor = link.partition("#")
        to = (page.parent / name).resolve() if name else page
        if not to.exists() or (anchor and anchor not in anchors_of(to)):
            lost.append(link)
    assert lost == []
