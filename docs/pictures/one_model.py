"""Calls of five questions to one model, and of each to a model of its own."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from style import BLUE, ORANGE, save

import surrokit as sk

TIMES = np.linspace(0.0, 4.0, 12)


def curve(q):
    """Return what is observed at twelve times."""
    return q[0] * np.exp(-q[1] * TIMES)


def slopes(q):
    """Return its derivatives."""
    return np.column_stack([np.exp(-q[1] * TIMES), -TIMES * curve(q)])


def declared():
    """Return a model without evaluations."""
    return sk.model(
        curve,
        slopes,
        parameters={"height": (0, None), "rate": (0, None)},
        plausible={"height": (1, 3), "rate": (0.3, 1)},
    )


DATA = curve(np.array([2.0, 0.7])) + 0.1 * np.sin(5.0 * TIMES)
LATER = curve(np.array([2.1, 0.73])) + 0.1 * np.cos(3.0 * TIMES)
QUESTIONS = {
    "the first data": {"data": DATA, "noise_sd": 0.1},
    "errors twice as large": {"data": DATA, "noise_sd": 0.2},
    "Student's t errors": {"data": sk.observed(DATA, 0.1, family="student", degrees=4)},
    "a prior": {"data": DATA, "noise_sd": 0.1, "prior": sk.gaussian_prior([2.2, 0.6], 0.1)},
    "other data": {"data": LATER, "noise_sd": 0.1},
}


def ask(model, question, most):
    """Return the run of a question."""
    run = sk.sample(model.posterior(**question), max_calls=most, seed=1, progress=False)
    figures = run.summary().columns
    rows = zip(*(figures[name] for name in ("mean", "sd", "mcse")), strict=True)
    print(run.total_calls, *(f"{mean:.4f} {sd:.4f} {mcse:.5f}" for mean, sd, mcse in rows))
    return run


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    shared, calls = declared(), []
    for i, question in enumerate(QUESTIONS.values()):
        most = 20 if i else 100
        calls.append([ask(shared, question, most), ask(declared(), question, 100)])
    one, own = np.array([[run.total_calls for run in pair] for pair in calls]).T
    figure, axes = plt.subplots(figsize=(5.6, 2.4), layout="constrained")
    rows = np.arange(len(QUESTIONS))
    axes.barh(rows - 0.2, own, 0.38, color=ORANGE, label="to a model of its own")
    axes.barh(rows + 0.2, one, 0.38, color=BLUE, label="to one model, in this order")
    axes.set_yticks(rows, QUESTIONS)
    axes.invert_yaxis()
    axes.set(xlabel="calls of the model")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, fontsize=8)
    save(figure, "one-model")
