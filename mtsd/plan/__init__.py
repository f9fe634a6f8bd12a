"""What a configuration would do with a recorded load: the schedule itself, in simulated time.

Pure: it reads no clock, no file and no socket. Times are in seconds.
"""
