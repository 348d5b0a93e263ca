"""Targets that external programs evaluate: one process for each call, JSON in and JSON out."""
