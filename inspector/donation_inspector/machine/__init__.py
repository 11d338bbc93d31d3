"""What the operating system gives: temporary files, pipes, child processes."""
