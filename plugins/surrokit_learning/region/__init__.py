"""Where a surrogate is trusted, and draws from it there."""
