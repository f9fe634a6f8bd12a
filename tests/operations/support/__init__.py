"""The support bundle."""
