"""The control socket: its routes, its server, its client, and the schema of the status."""
