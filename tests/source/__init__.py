"""How a channel goes on with a source, and where it begins: every case of a small world."""
