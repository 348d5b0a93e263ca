"""Surrogates that are Gaussian processes: the full one, and FITC with inducing points."""
