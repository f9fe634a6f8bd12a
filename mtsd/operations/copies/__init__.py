"""The place in the source's binary log that a copy of its data was taken at."""
