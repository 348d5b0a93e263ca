"""What a run returns."""
