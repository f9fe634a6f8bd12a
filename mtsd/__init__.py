"""mtsd: a MySQL replica outside the server."""

__version__ = "0.1.0.dev0"
