"""What a pass's own IR comes to, bufferized by MLIR and run."""
