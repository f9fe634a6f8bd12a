"""What `scripts/fuzz` runs."""
