"""Rows of the binary log: columns, values and keys."""
