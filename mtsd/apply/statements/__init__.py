"""Statements of the source, as they run on the target."""
