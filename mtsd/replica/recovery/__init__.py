"""Starting on a target that an earlier run may have left at any instant."""
