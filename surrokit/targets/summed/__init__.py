"""Sums over rows of data that have a rest, and models of other libraries that are such sums."""
