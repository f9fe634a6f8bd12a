"""Options of the format `mtsd_binlog`, validated."""
