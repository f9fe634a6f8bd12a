"""What flows between the floors."""
