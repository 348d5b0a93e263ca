"""Exact calls: made, counted, kept, timed and limited."""
