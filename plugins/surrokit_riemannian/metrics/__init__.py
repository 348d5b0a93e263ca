"""Metrics that change with position."""
