"""The recipe of a run: its parts, sizes and limits."""
