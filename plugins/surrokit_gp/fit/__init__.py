"""Hyperparameters found, and processes fitted."""
