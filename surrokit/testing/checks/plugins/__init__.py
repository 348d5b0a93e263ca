"""Checks of plugins and experiments."""
