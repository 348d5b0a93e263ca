"""Moves in coordinates in which each parameter by itself is about normal."""
