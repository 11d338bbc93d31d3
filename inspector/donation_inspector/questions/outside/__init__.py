"""What else is on the device, by the variables that hold it."""
