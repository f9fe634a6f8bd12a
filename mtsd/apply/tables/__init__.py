"""What the target's tables are: engines, columns, keys, foreign keys."""
