"""The chains of the paper, and how they are timed."""
