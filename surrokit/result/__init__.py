"""Results: draws, their account, summaries and advice."""
