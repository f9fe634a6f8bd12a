"""One file for each operation on a replica that is not running."""
