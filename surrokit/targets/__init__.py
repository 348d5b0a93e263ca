"""Targets from functions and forward maps, and checks of them."""
