"""Row events as statements for the target."""
