"""The servers' own test suites, replicated by mtsd and by the server's own replica beside it."""
