"""jaxlib's MLIR and xDSL's IR: importing, exporting, and what the entry function, types and locations say."""
