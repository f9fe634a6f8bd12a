"""SQL literals that mean the same in every session."""
