"""Exact calls in other processes and threads: a batch goes out, and results come back in order."""
