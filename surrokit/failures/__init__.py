"""How a target failed: what each row raised, how many of each kind, and what is told."""
