"""Families of terms of one linear predictor, and their functions."""
