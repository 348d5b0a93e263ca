"""A metric that bends with the target, and what that does to a path."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from style import BLACK, BLUE, GREY, ORANGE, save

import surrokit as sk
from surrokit.interfaces import Hamiltonian
from surrokit.plugin import Phase

START, DIRECTION = (1.0, 0.1), (0.2, 2.0)
N_STEPS = 60
LENGTH = 1.0  # of the axes of an ellipse, in the metric's units


def path(integrator, metric, potential, start, momentum, step_size):
    """Return the points of one path, shape (steps + 1, 2)."""
    hamiltonian = Hamiltonian(potential=potential, metric=metric)
    position = np.array([start])
    phase = Phase(
        positions=position,
        momenta=np.array([momentum]),
        cache=integrator.cache(hamiltonian, position),
    )
    points = [position[0]]
    for _ in range(N_STEPS):
        phase, status = integrator.advance(hamiltonian, phase, np.array([step_size]), np.array([1]))
        if status[0]:
            break
        points.append(phase.positions[0])
    return np.array(points)


def contours(ax, target):
    """Draw where U is 1, 2, 4 and 8 above its least."""
    x, y = np.meshgrid(np.linspace(-3.2, 3.2, 200), np.linspace(-2.6, 2.6, 200))
    values = target.value(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    levels = values.min() + np.array([1.0, 2.0, 4.0, 8.0])
    ax.contour(x, y, values, levels, colors=GREY, linewidths=0.6)
    ax.set(xlabel="q[0]", ylabel="q[1]", xlim=(-2.6, 2.6), ylim=(-2.1, 2.1))


def unit_ellipse(metric, target, position):
    """Return where velocities of unit length lead, u^T G u = 1, as a patch."""
    cache = metric.factor(target, np.array([position]))
    values, vectors = np.linalg.eigh(cache["metric_inverse"][0])
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return Ellipse(
        position,
        LENGTH * np.sqrt(values[1]),
        LENGTH * np.sqrt(values[0]),
        angle=angle,
        facecolor=ORANGE,
        edgecolor=BLACK,
        linewidth=0.6,
        alpha=0.6,
    )


if __name__ == "__main__":
    target = sk.make("potential", "banana")
    metric = sk.make("metric", "gauss-newton")
    riemannian = sk.make("integrator", "generalized-leapfrog")
    leapfrog, identity = sk.make("integrator", "leapfrog"), sk.make("metric", "identity")

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0), layout="constrained")
    contours(left, target)
    angles = np.linspace(-0.98, 0.98, 13)
    for height in 1.75 * angles:
        left.add_patch(unit_ellipse(metric, target, (1.0 - height**2, height)))
    left.set_title("half a unit of the metric, at some positions")

    contours(right, target)
    start = np.array(START)
    cache = metric.factor(target, start[None])
    momentum = cache["metric_factor"][0] @ np.array(DIRECTION)
    plain = path(leapfrog, identity, target, start, momentum, 0.06)
    bent = path(riemannian, metric, target, start, momentum, 0.06)
    right.plot(*plain.T, color=ORANGE, lw=1.2, label="identity, 60 steps of 0.06")
    right.plot(*bent.T, color=BLUE, lw=1.4, label="gauss-newton, 60 steps of 0.06")
    right.plot(*start, "o", color=BLACK, ms=4)
    right.set_title("one path each, from one position and momentum")
    right.legend(loc="lower left", fontsize=7)
    save(figure, "riemannian")
