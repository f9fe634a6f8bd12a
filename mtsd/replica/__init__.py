"""Coroutines that carry out the decisions of `mtsd.schedule`."""
