"""The region in which a surrogate is trusted, and draws from it there."""
