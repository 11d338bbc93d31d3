"""jaxlib's MLIR and xDSL's IR: importing, exporting, and what the entry function, types and locations say."""

import os

# jaxlib reads this once, when it is loaded; `import jax` sets it so too, and here jaxlib may be loaded before jax.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
