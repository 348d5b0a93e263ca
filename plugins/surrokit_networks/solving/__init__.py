"""Least squares: equations, bases, and how coefficients are solved for."""
