"""Studies: runs whose model is evaluated by hand, or by whatever cannot be called."""
