"""Sums over rows of terms that users write."""
