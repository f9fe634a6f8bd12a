"""The commands that move replication from one server, or one replica, to another."""
