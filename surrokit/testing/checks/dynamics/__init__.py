"""Checks of integrators and metrics."""
