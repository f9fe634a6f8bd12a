"""What a part runs as processes of their own, over recorded files."""
