"""A run of the replica: its start, the dispatch of groups, checkpoints."""
