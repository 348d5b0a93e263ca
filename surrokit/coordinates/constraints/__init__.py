"""Constraints that tie the numbers of a parameter together, and the maps that undo them."""
