"""Answers from draws of a surrogate, corrected by exact potentials at a few of them."""
