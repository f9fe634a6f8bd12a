"""Files that a source loads with LOAD DATA, and the statements that load them."""

from contextlib import closing

import pymysql

from tests.servers.mysqld import Options, Server

SOURCE: Options = {"binlog_format": "STATEMENT", "local_infile": 1}
TABLE = "(id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(20), u INT)"


def file(server: Server, name: str, text: str | bytes) -> str:
    """Write a file that the server can read, and return its path."""
    path = server.folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def run(server: Server, *statements: str) -> None:
    """Run statements in one session in `d`, which may send files of this machine."""
    client = pymysql.connect(
        unix_socket=str(server.socket), user="root", database="d", autocommit=True,
        local_infile=True, charset="utf8mb4", ssl_disabled=True,
    )  # fmt: skip
    with closing(client), client.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
