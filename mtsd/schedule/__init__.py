"""Pure: which worker applies which group, after what, and what a restart may skip."""
