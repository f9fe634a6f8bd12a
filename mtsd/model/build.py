"""How this mtsd was built."""

from typing import Final

COMPILED: Final = not __file__.endswith(".py")
"""Whether mypyc has compiled the modules on the way of every transaction, this one with them."""
