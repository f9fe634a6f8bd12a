"""`mtsd binlog`: events, groups and rows of binary logs, listed."""
