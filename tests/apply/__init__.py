"""What goes to the target."""
