"""A pass's own IR, bufferized and run: allocations, copies and heap counted, without XLA."""
