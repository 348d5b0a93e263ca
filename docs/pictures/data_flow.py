"""Data goes one way: the picture of the page on architecture."""

from itertools import pairwise

import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from style import BLACK, BLUE, GREY, ORANGE, save

# name, what it hands on, column, row, colour
BOXES = (
    ("target", "U, gradient", 0, 0, ORANGE),
    ("recording wrapper", "counts, keeps", 1, 0, ORANGE),
    ("explorer", "exact burn-in", 2, 0, ORANGE),
    ("evaluations", "of the model", 3, 0, GREY),
    ("learner", "observe", 3, 1, BLUE),
    ("fitted surrogate", "a Potential", 2, 1, BLUE),
    ("Hamiltonian", "with a metric", 1, 1, BLUE),
    ("integrator", "a path", 0, 1, BLUE),
    ("sampler", "propose", 0, 2, BLUE),
    ("proposal", "end, c", 1, 2, BLUE),
    ("correction", "one exact value each", 2, 2, ORANGE),
    ("state, info", "draws", 3, 2, GREY),
    ("run", "loop, observers", 3, 3, GREY),
    ("schedule", "observe? deploy?", 2, 3, GREY),
)
WIDTH, HEIGHT, DX, DY = 1.95, 0.62, 2.4, 1.12


def centre(box: tuple) -> tuple[float, float]:
    """Return where the middle of a box lies."""
    return box[2] * DX, -box[3] * DY


def arrow(axes: plt.Axes, start, end, **style) -> None:
    """Draw an arrow between two points."""
    options = {"arrowstyle": "-|>", "mutation_scale": 10, "color": BLACK, "lw": 1.0} | style
    axes.add_patch(FancyArrowPatch(start, end, shrinkA=0, shrinkB=0, **options))


def between(axes: plt.Axes, first: tuple, second: tuple) -> None:
    """Draw an arrow from the edge of one box to the edge of its neighbour."""
    (x0, y0), (x1, y1) = centre(first), centre(second)
    if y0 == y1:
        side = WIDTH / 2 if x1 > x0 else -WIDTH / 2
        arrow(axes, (x0 + side, y0), (x1 - side, y1))
    else:
        arrow(axes, (x0, y0 - HEIGHT / 2), (x1, y1 + HEIGHT / 2))


if __name__ == "__main__":
    figure, axes = plt.subplots(figsize=(8.0, 4.2))
    for box in BOXES:
        name, note, _, _, colour = box
        x, y = centre(box)
        axes.add_patch(
            FancyBboxPatch(
                (x - WIDTH / 2, y - HEIGHT / 2),
                WIDTH,
                HEIGHT,
                boxstyle="round,pad=0,rounding_size=0.08",
                fc=colour + "22",
                ec=colour,
                lw=1.3,
            )
        )
        axes.text(x, y + 0.1, name, ha="center", va="center", weight="bold", size=8.5)
        axes.text(x, y - 0.15, note, ha="center", va="center", size=7.5)
    for first, second in pairwise(BOXES):
        between(axes, first, second)
    # what the schedule decides comes back to the run's sampler
    (x0, y0), (x1, y1) = centre(BOXES[13]), centre(BOXES[8])
    corner = (x1, y0)
    axes.plot([x0 - WIDTH / 2, corner[0]], [y0, y0], color=BLACK, lw=1.0, ls="--")
    arrow(axes, corner, (x1, y1 - HEIGHT / 2), ls="--")
    axes.text(DX * 0.72, y0 + 0.12, "run deploys a new snapshot", ha="center", va="bottom", size=8)
    axes.text(
        -WIDTH / 2,
        -3 * DY - 0.62,
        "orange: the exact potential is called        blue: cheap, on the surrogate",
        size=8,
        va="top",
    )
    axes.set(xlim=(-1.0, 3 * DX + 1.0), ylim=(-3 * DY - 0.9, 0.45), aspect="equal")
    axes.axis("off")
    save(figure, "data-flow")
