"""Predicts how a configuration would handle a recorded load, by running the real scheduler.

Pure: time is simulated, and no clock, file or socket is read. Times are in seconds.
"""
