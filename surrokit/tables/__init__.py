"""Regressions from tables: formulas, columns by name, and coefficients that are called by them."""
