"""The notebook's own words: the magic."""
