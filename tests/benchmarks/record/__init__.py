"""Short seeded runs, and what they must give again after a refactoring."""
