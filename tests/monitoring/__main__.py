"""Writes them."""

from tests.monitoring.written import written

for path, text in written().items():
    path.write_text(text, encoding="utf-8")
    print(path)
