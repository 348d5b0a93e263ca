"""Limits of runs, and of supports."""
