"""How this mtsd was built."""

from typing import Final

COMPILED: Final = not __file__.endswith(".py")
"""Whether mypyc has compiled the hot-path modules, of which this is one."""
