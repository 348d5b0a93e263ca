"""What a step of a search for a mode is made of."""
