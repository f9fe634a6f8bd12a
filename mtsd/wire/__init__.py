"""The connection to a server: the one place that touches aiomysql's internals."""
