"""The snippets of "Errors that are not known", one script."""

# [map]
import numpy as np
import scipy.stats

import surrokit as sk

TIMES = np.linspace(0.0, 4.0, 9)


def forward(height, rate):  # the expensive map
    return height * np.exp(-rate * TIMES)


def jacobian(height, rate):  # its derivatives, if there are any: shape (m, 2)
    decay = np.exp(-rate * TIMES)
    return np.column_stack([decay, -height * TIMES * decay])


PARAMETERS = {
    "height": sk.positive(prior=scipy.stats.gamma(2.0)),
    "rate": sk.positive(prior=scipy.stats.gamma(2.0, scale=0.5)),
}
data = [2.13, 1.49, 1.24, 0.95, 0.74, 0.55, 0.49, 0.32, 0.31]
# [one]
target = sk.forward_potential(
    forward, jacobian, data=data, noise_sd="estimate", parameters=PARAMETERS
)
run = sk.sample(target, surrogate="additive", seed=1, progress=False)
print(run.summary())
# [groups]
instrument = [0] * 4 + [1] * 5  # the old one, and the new one
target = sk.forward_potential(
    forward,
    jacobian,
    data=data,
    noise_sd=sk.estimated(instrument, prior=scipy.stats.halfnorm(scale=0.2)),
    parameters=PARAMETERS,
)
print(target.parameters.labels)
# [student]
wild = [*data[:4], 1.6, *data[5:]]
target = sk.forward_potential(
    forward,
    jacobian,
    data=sk.observed(wild, "estimate", family="student", degrees=3),
    parameters=PARAMETERS,
)
run = sk.sample(target, surrogate="additive", seed=1, progress=False)
print(np.round(run["rate"].mean(), 2), np.round(run["scale"].mean(), 2))


# [sets]
def counts(height, rate):  # mean counts of a detector, from the same parameters
    return 20.0 * height * (1.0 - np.exp(-rate * np.array([0.5, 1.0, 2.0])))


def counts_jacobian(height, rate):
    at = np.array([0.5, 1.0, 2.0])
    decay = np.exp(-rate * at)
    return 20.0 * np.column_stack([1.0 - decay, height * at * decay])


target = sk.forward_potential(
    lambda height, rate: np.concatenate([forward(height, rate), counts(height, rate)]),
    lambda height, rate: np.concatenate([jacobian(height, rate), counts_jacobian(height, rate)]),
    data={
        "levels": sk.observed(data, "estimate", family="lognormal"),
        "counts": sk.observed([9, 17, 28], family="poisson"),
    },
    parameters=PARAMETERS,
)
run = sk.sample(target, surrogate="additive", seed=1, progress=False)
print(target.parameters.labels, run.outputs.shape)
# [end]
