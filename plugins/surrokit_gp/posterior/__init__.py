"""Posteriors of processes, exact and by inducing points."""
