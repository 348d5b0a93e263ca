"""Targets from functions and forward maps, and what is found out about them."""
