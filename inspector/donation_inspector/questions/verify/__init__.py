"""What became of each donated buffer in a real call."""
