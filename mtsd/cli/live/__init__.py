"""What `mtsd top` shows, and the keys it knows."""
