"""Training data of processes."""
