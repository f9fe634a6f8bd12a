"""What `--part` names: each compares, and prints its figures."""
