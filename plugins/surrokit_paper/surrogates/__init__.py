"""The surrogates of the paper, and how they are trained."""
