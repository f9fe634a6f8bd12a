"""Pure: bytes to events, events to groups, and events rewritten for the applier."""
