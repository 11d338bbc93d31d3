"""From XLA's own buffers to the user's words: whose bytes they are, what fills the peak, why something was copied.

It reads the compiled module alone, with the user's names of arguments and results; nothing here imports JAX.
"""
