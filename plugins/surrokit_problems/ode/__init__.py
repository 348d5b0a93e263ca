"""The lynx and the hare."""
