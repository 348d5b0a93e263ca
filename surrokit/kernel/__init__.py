"""Transitions of chains, and the warm-up that tunes them."""
