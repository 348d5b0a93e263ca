"""From evaluations to a fitted regressor."""
