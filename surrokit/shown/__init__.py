"""How notebooks show parts: HTML, in which all text is escaped."""
