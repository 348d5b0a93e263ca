"""Regressions with draws of their posteriors inside, as estimators of scikit-learn."""
