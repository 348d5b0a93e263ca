"""What checks are written with."""
