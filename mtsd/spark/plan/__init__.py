"""What `mtsd plan` does on Spark: recording a load, and simulating it."""
