"""Implicit integrators."""
