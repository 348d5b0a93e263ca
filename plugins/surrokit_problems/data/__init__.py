"""Data files, and what is downloaded."""
