"""Moves: `mtsd takeover`, `mtsd handover` and `mtsd switchover`."""
