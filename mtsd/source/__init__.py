"""A stream of groups from the source."""
