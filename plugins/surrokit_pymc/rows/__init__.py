"""Models of PyMC whose observed data are the rows of a regression."""
