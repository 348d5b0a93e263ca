"""Exploration by values alone, where a process of those so far is least sure."""
