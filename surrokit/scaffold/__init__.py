"""Distributions of plugins, to begin one's own from."""
