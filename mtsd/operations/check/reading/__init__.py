"""Reads the facts of the check from servers: nothing is locked, written or registered."""
