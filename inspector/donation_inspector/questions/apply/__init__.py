"""What a pipeline of passes makes of the program."""
