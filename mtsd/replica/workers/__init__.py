"""Workers: they take batches, apply them, retry and report."""
