"""What holds for every test."""

from collections.abc import Iterator

import pytest

from mtsd.model.outcome.command import remember
from tests.replica.daemon_process import close_all
from tests.time_spent import TimeSpent


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(TimeSpent(config))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # One process runs these, with one JVM: who has no tests left takes over the last ones of
    # another process, never the first.
    items.sort(key=lambda item: "spark" not in item.path.parts)


@pytest.fixture(autouse=True)
def _no_daemon_outlives_its_test() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(autouse=True)
def _commands_of_messages_have_no_options_of_another_test() -> None:
    remember(())
