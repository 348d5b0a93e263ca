"""Sums over rows of data."""
