"""Checks of samplers and corrections."""
