"""What flows between the floors: positions, groups, session contexts, errors, fault points."""
