"""Checks of plugins and policies."""
