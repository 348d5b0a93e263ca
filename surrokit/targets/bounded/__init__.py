"""Targets with bounded or otherwise constrained parameters, on the whole line."""
