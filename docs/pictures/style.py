"""What the pictures share: a palette that colour-blind readers can tell apart, and saving."""

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent

# Okabe and Ito (2008), Color Universal Design
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY = "#777777"

plt.rcParams.update(
    {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 9,
        "axes.titlelocation": "left",
        "legend.frameon": False,
        "svg.fonttype": "path",
        "svg.hashsalt": "surrokit",
        "figure.facecolor": "white",
    }
)


def save(figure: plt.Figure, name: str) -> None:
    """Write an SVG that is the same, byte for byte, whenever the figures in it are."""
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
