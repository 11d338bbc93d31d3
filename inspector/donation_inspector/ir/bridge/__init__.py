"""Attributes, types, constants and locations, both ways between jaxlib's MLIR and xDSL."""
