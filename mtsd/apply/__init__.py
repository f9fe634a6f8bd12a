"""Sessions on the target, their locks, the applier and the position tables."""
