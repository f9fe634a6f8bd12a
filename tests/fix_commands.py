"""Commands of `mtsd` that run in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

SAYS_WHAT_IS_IMPORTED = """
import json, sys
from mtsd.__main__ import main
try:
    main()
finally:
    print(json.dumps(list(sys.modules)), file=sys.stderr)
"""


def imported_by(*arguments: str) -> set[str]:
    """Run `mtsd` in a process of its own; returns the modules that are imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", SAYS_WHAT_IS_IMPORTED, *arguments],
        env={name: value for name, value in os.environ.items() if "MTSD_" not in name},
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    modules = next(line for line in done.stderr.splitlines() if line.startswith('["'))
    return set(json.loads(modules))
