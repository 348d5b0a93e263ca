"""Checks of potentials."""
