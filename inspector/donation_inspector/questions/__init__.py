"""What can be asked of a program, a package each: ask.py does the work, answer.py holds what comes of it."""
