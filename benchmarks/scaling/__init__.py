"""The table of docs/scaling.md, and its plots."""
