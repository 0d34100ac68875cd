"""A reading list: what you want to read, what you have read, and what you call it."""
