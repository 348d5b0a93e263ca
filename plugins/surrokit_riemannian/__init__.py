"""Riemannian manifold HMC: metrics that change with position, and integrators that follow them."""
