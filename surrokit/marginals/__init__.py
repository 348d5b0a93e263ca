"""Coordinates in which each parameter by itself is about normal: the map, and how it is learnt."""
