"""The position on the target: its tables, and the locks that fence it."""
