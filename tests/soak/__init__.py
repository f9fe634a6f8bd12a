"""A replica under a mixed load for a long time, that must not grow."""
