"""Pure: turns bytes into events, and events into groups; rewrites events for the applier."""
