"""Purposes that parts serve where a user names none.

At most one part of a kind serves a purpose. A policy may look for purposes of its own.
"""

DEFAULT = "default"
"""Used where nothing of its kind is named."""

GRADIENTS = "gradients"
"""A sampler of exact potentials that have gradients."""

VALUES = "values"
"""A sampler of exact potentials that have nothing but values."""

NO_LEARNING = "no-learning"
"""A schedule that never learns."""

STARTS = "starts"
"""An explorer that takes the chains of an exact sampler to where the mass is."""

DIFFERENCES = "differences"
"""An explorer for which gradients made of differences of values are worth what they cost."""

ON_SURROGATE = "surrogate"
"""A sampler whose transitions on a surrogate are many for one exact call, and an explorer that
looks for a surrogate."""

ANSWERS = "answers"
"""A correction of answers rather than of draws."""

SUMS_OF_ROWS = "rows"
"""A potential that is a sum over rows of data, by the name of its terms' family."""

OWN_SUMS = "own-rows"
"""A potential that is a sum over rows of data, of terms that a user's function gives."""

PARTITIONED_SUMS = "partitioned-rows"
"""A potential that is a sum over rows of a collection that is in partitions, perhaps elsewhere."""
