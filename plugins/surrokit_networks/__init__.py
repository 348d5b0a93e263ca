"""Surrogates that are shallow networks of random nodes."""
