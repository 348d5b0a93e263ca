"""Targets in coordinates of like scale, and what scales are known before any evaluation."""
