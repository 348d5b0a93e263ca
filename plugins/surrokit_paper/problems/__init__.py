"""The problems of the paper."""
