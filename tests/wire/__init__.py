"""The protocol between a replica and its servers."""
