"""Figures by which methods are compared."""
