"""Statements of the binary log: their tokens, names, kinds and tables."""
