"""Figures 4 and 5: acceptance over sizes."""
