"""Sums over rows of Dask collections: rows stay where they are, and sums travel."""
