"""What rounds pay for, and surrogates that learn from a part of it, corrected by the rest."""
