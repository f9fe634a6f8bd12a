"""What the parts are fed with: loads, and recorded binary logs."""
