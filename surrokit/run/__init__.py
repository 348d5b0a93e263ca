"""The loop over iterations, and what it keeps in hand."""
