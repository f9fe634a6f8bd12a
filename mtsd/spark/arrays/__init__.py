"""Columns of rows as Arrow arrays, all values at once."""
