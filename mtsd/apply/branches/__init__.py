"""Branches of XA transactions on the target."""
