"""The scripts by which shells complete."""
