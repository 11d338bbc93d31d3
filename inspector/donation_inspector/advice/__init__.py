"""Which change saves memory, whether it is safe, and the code that makes it."""
