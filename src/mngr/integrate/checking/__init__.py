"""Running tests on trees, and what follows from them: what travels, what is set aside, what can be reverted."""
