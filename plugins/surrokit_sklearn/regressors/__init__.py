"""Surrogates as regressors of scikit-learn."""
