"""What is done: the GAQ, executed groups, rows of workers, prepared transactions."""
