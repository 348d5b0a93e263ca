"""What a run is made of and may spend."""
