"""The status socket: its schema, its server and its client."""
