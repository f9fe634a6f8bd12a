"""The life of the process: start, recover, run, stop."""
