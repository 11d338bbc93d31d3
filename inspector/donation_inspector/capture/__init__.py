"""Where an Inspection comes from: a function and its arguments, a file, a call under way, a call that failed."""
