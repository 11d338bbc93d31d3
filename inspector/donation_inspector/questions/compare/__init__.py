"""What XLA makes of the program: compiled, and run."""
