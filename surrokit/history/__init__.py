"""Iterations of a run: gathered as they happen, and as arrays."""
