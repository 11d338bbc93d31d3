"""See what buffer donation does to a JAX program."""
