"""What rounds pay for, and surrogates that learn from a part of it and are corrected by the rest."""
