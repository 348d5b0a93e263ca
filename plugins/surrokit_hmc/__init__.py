"""Hamiltonian Monte Carlo with a constant mass matrix, and a random walk beside it."""
