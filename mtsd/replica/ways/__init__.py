"""The ways in which groups reach the target."""
