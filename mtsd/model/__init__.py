"""What flows between the layers: positions, groups, session contexts, errors, fault points."""
