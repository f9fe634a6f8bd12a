"""Policies: which worker gets a group, and what the group comes after."""
