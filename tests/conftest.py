"""Settings that must stand before jax is first imported: the CPU platform with eight devices, which case 22 needs."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
