"""What was observed of a forward map, and how it scatters about the outputs."""
