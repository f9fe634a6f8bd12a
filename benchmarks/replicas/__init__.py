"""The two replicas that are compared, their servers, and what they use."""
