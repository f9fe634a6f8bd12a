"""What all parts of a run share: the coordinator, limits, reports."""
