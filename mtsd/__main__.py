"""`python -m mtsd`: the same as the command `mtsd`."""

import sys

from mtsd.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
