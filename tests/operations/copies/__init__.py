"""The place of a copy."""
