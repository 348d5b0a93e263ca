"""Contracts of all kinds of part, and the records that travel between parts.

Positions come in rows: every array that holds positions has shape ``(n, dim)``. Potentials are
U(q) = -log density + constant, in nats. The random generator is always an argument. Parts are
frozen: a changed part is a new one. Records are frozen too, and nothing else travels between parts.
"""
