"""What readers of figures 4 and 5 must know."""

NOTES = (
    "the paper prints no numbers on its axes; sizes are ours. It does not say how many rows its "
    "data have, nor how long its paths are: 10000 rows unless set otherwise, and up to 6 steps.",
    "acceptance is the mean of the exact acceptance probabilities of short chains from draws of "
    "the target; all surrogates of a run have the same starts, momenta and numbers of steps.",
    "numbers are medians over runs.",
    "training points are accepted proposals of one chain of exact HMC past its burn-in.",
    "surrokit's defaults choose their number of nodes themselves.",
)
"""Sentences."""
