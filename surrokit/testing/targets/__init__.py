"""Potentials to test with."""
