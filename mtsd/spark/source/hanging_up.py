"""What a reader says when Spark hangs up on it, having enough rows for a `.show()`: nothing."""

import sys
import traceback
from typing import Final

_DAEMON: Final = "pyspark.daemon"


class _SaysNothingOfIt:
    """The module `traceback`, as far as PySpark's daemon uses it."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        """Print the traceback of the current exception, unless the reader was hung up on."""
        if not isinstance(sys.exception(), BrokenPipeError | ConnectionResetError):
            traceback.print_exc()


def hang_up_quietly() -> None:
    """Keep PySpark's daemon, in this process, from printing that the connection has ended.

    It prints a traceback for it, which whoever tries their first `.show()` takes for a failure.
    """
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == _DAEMON and getattr(main, "traceback", None) is traceback:
        main.traceback = _SaysNothingOfIt  # type: ignore[attr-defined]
