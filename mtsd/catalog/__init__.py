"""Pure: table definitions as of a position."""
