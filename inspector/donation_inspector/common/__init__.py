"""What every layer shares: plain data of a program's signature, units, tables, progress, whose code a file is."""
