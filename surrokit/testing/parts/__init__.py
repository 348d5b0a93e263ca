"""Sound parts to test others with."""
