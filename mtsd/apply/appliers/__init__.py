"""Appliers: how groups are applied on one session of the target."""
