"""Pure: what is replicated, under which name."""
