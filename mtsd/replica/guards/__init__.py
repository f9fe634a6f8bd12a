"""What would damage data without an error: looked for at the start and while running."""
