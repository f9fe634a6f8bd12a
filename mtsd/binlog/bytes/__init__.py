"""Bytes of the binary log: fields, headers, checksums, character sets."""
