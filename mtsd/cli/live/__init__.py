"""What a terminal shows of what goes on: `mtsd top` with its keys, and the progress of a plan."""
