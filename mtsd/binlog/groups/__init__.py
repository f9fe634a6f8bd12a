"""From events to groups, which are applied as wholes."""
