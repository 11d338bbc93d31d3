"""The program at other sizes of its arguments."""
