"""From training rows to a fitted network of the potential."""
