"""The scheduling floor: examples of the worklog, random and exhaustive interleavings, crashes."""
