"""What a worker takes at once from its queue, and has in flight."""
