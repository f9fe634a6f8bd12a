"""Coroutines that carry the decisions of `mtsd.schedule` out."""
