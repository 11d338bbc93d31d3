"""What running the variants on the device comes to."""
