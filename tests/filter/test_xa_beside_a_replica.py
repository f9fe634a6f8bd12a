"""XA transactions under rules are refused, as a MySQL's own replica refuses them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.filter.beside_a_replica import Rules, Three
from tests.replica.daemon_process import DaemonProcess, Value
from tests.servers.mariadb import provide_mariadb
from tests.servers.provision import provide

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

RULES: dict[str, Rules] = {
    "passes": {"do_db": ["a"]},
    "left out": {"ignore_db": ["a"]},
    "by table": {"wild_ignore_table": ["a.u"]},
    "renamed": {"rewrite_db": [["a", "x"]]},
}


@pytest.fixture(scope="module", params=["9.7", "11.8"])
def three(request: pytest.FixtureRequest) -> Iterator[Three]:
    with Three.running(provide() if request.param == "9.7" else provide_mariadb("11.8")) as three:
        yield three
