"""Ranks of true parameters of lynx and hare, with the right errors and with wrong ones."""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from style import BLUE, GREY, SKY, VERMILION, save

import surrokit as sk
from surrokit_problems.lynx_hare import TIMES, log_populations, log_populations_and_sensitivities

MEDIANS = {
    "alpha": 0.545,
    "beta": 0.028,
    "gamma": 0.8,
    "delta": 0.024,
    "hare_0": 34.0,
    "lynx_0": 5.9,
}


def logs(q):
    """Return the logarithms of both populations by year, shape (n, 42)."""
    return log_populations(q, TIMES).reshape(len(q), -1)


def slopes(q):
    """Return their derivatives, shape (n, 42, 6)."""
    return log_populations_and_sensitivities(q, TIMES)[1].reshape(len(q), -1, 6)


def larger_errors(rng, outputs, position):
    """Return data whose errors are half as large again as those of the posterior."""
    return outputs + 1.5 * np.tile(position[6:], 21) * rng.standard_normal(42)


def calibrated(**settings):
    """Return a calibration of 200 data sets, under priors that are known to 15 %."""
    priors = {k: sk.positive(prior=stats.lognorm(0.15, scale=at)) for k, at in MEDIANS.items()}
    model = sk.model(logs, slopes, parameters=priors, batched=True)
    sds = sk.estimated([0, 1] * 21, prior=stats.lognorm(0.2, scale=0.25))
    target = model.posterior(data=np.zeros(42), noise_sd=sds)
    before = time.process_time()
    found = sk.calibrate(target, n=200, surrogate="quadratic", seed=1, **settings)
    seconds = time.process_time() - before
    print(found, found.effective.mean(), f"{seconds:.0f} s", sep="\n", flush=True)
    return found


if __name__ == "__main__":
    right, wrong = calibrated(), calibrated(simulate=larger_errors)
    places, low, high = right.bands()
    figure, axes = plt.subplots(3, 3, figsize=(6.4, 4.2), layout="constrained", sharex=True)
    for i, axis in enumerate(axes.flat):
        axis.fill_between(places, low - places, high - places, color=SKY, alpha=0.35, linewidth=0)
        axis.axhline(0.0, color=GREY, linewidth=0.6)
        for found, colour in ((right, BLUE), (wrong, VERMILION)):
            below = (found.ranks[:, i] <= places[:, None]).mean(axis=1)
            axis.step(places, below - places, color=colour, where="post", linewidth=1.0)
        axis.set_title(right.labels[i])
    axes[1, 0].set_ylabel("ECDF of ranks less that of uniform ones")
    axes[2, 1].set_xlabel("rank of the true value")
    save(figure, "calibration")
