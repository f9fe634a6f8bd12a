"""A session on the target: its state, its transactions, its errors."""
