"""What is asked of a person's own call, for a test or a folder: verify, assert_donated, corpus."""
