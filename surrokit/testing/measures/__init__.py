"""Tools that checks are written with."""
