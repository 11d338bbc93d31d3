"""XLA's own buffers: read from the HloProto of a compiled module, and laid out in time as XLA does it.

`buffers.read_buffers` is the way in. Nothing here imports JAX.
"""
