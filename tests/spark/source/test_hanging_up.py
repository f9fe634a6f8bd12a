"""PySpark's daemon prints the errors of its workers, and not that Spark has hung up on one."""

import sys
import traceback
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from mtsd.spark.source.hanging_up import hang_up_quietly


@pytest.mark.parametrize(
    ("name", "error", "is_printed"),
    [
        ("pyspark.daemon", BrokenPipeError(), False),
        ("pyspark.daemon", ConnectionResetError(), False),
        ("pyspark.daemon", ValueError(), True),
        ("somebody.else", BrokenPipeError(), True),
    ],
)
def test_what_the_daemon_prints(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    error: Exception,
    *,
    is_printed: bool,
) -> None:
    daemon = ModuleType("__main__")
    daemon.__spec__ = ModuleSpec(name, None)
    daemon.traceback = traceback  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", daemon)
    for _ in range(2):
        hang_up_quietly()
        try:
            raise error
        except Exception:  # noqa: BLE001 - as the daemon does
            daemon.traceback.print_exc()
        assert (type(error).__name__ in capfd.readouterr().err) is is_printed
