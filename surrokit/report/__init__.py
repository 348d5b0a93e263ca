"""Pages about runs, and how notebooks show them."""
