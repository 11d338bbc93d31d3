"""From a line, a value, an instruction or an argument to the others."""
