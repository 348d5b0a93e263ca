"""Chains from exact draws of targets that are hard on a sampler, and whether they stay such."""
