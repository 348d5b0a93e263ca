"""From entry points to parts."""
