"""The user's model: the only thing that is called, counted and kept."""
