"""Corrections: how the exact potential decides on proposals."""
