"""Tools for surrogates: whitening, training rows, and the quality of fits."""
