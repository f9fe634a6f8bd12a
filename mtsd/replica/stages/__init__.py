"""Stages between the source and the dispatch: each passes groups on, or holds them."""
