"""Where a potential is least, and where chains start."""
