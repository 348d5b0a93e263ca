"""The search for the mode, and the starts of chains."""
