"""Models of NumPyro whose observed data are the rows of a regression."""
