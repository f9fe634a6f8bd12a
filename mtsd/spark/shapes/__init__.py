"""The shapes of a DataFrame: events, groups, changes, a table."""
