"""Fits that take in rows as they come."""
