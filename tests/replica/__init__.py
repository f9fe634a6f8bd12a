"""The daemon between real servers."""
