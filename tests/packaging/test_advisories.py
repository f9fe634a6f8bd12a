"""What scripts/audit says of locked packages, from an index on this machine."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from scripts.advisories import main, pinned

KNOWN = {
    "id": "PYSEC-1", "fixed_in": ["9.9"], "link": "https://osv.dev/PYSEC-1", "withdrawn": None,
}  # fmt: skip


class Index(BaseHTTPRequestHandler):
    """Has an advisory about one package, a withdrawn one about all, and does not know another."""

    def do_GET(self) -> None:
        withdrawn = {**KNOWN, "withdrawn": "2026-01-01"}
        found = [KNOWN, withdrawn] if self.path.startswith("/h11/") else [withdrawn]
        if self.path.startswith("/uvloop/"):
            self.send_error(404)
            return
        body = json.dumps({"vulnerabilities": found}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def index() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_advisory_fails_the_audit(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(index) == 1
    told, unknown, count = capsys.readouterr().out.splitlines()
    assert told.startswith("h11 ")
    assert unknown.startswith("uvloop ")
    assert told.endswith(": PYSEC-1, fixed in 9.9: https://osv.dev/PYSEC-1")
    assert count == f"audit: {len(pinned()) - 1} locked packages, 1 advisories"


def test_without_a_network_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("http://127.0.0.1:1") == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("audit: nothing was looked at, because http://127.0.0.1:1 tells no ")
