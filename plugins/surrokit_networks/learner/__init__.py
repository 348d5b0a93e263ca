"""Learners, and what they learn with."""
