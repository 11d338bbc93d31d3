"""A traced program and where it came from, and nothing that was answered about it."""
