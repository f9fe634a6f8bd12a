"""Names in lower case, as servers make it."""

import pytest

from mtsd.model.names import folded


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Shop", "shop"),
        ("CAFÉ", "café"),
        ("ŞİRKET", "şirket"),
        ("ΟΔΟΣ", "οδοσ"),
        ("straße", "straße"),
        ("\N{KELVIN SIGN}", "k"),
        ("", ""),
    ],
)
def test_folded(name: str, expected: str) -> None:
    assert folded(name) == expected
    assert folded(expected) == expected
