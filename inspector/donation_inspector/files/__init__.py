"""An Inspection in a file."""
