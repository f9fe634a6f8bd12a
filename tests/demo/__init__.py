"""What `scripts/demo` shows."""
