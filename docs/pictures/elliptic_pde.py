"""The elliptic inverse problem: the coefficient, the pressure, and what the data say of both."""

import matplotlib.pyplot as plt
import numpy as np
from style import BLACK, save

import surrokit as sk
from surrokit_problems.elliptic_pde import square_modes

FINE = np.linspace(0.0, 1.0, 121)


def panel(figure, axes, values, title, limits, colours, label):
    """Draw values on a grid, by x1 and x2."""
    image = axes.imshow(
        values.T, origin="lower", extent=(0, 1, 0, 1), cmap=colours, vmin=limits[0], vmax=limits[1]
    )
    axes.set(title=title, xlabel="$x_1$", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
    figure.colorbar(image, ax=axes, shrink=0.75, label=label)


def main() -> None:
    """Sample, and draw the picture."""
    potential = sk.make("potential", "elliptic-pde")
    eigenvalues, functions = square_modes(potential.modes, potential.length, FINE)
    scaled = np.sqrt(eigenvalues)[:, None, None] * functions
    gradients = sk.make("potential", "elliptic-pde", outputs=False)
    run = sk.sample(
        gradients, sampler="hmc", initial=np.zeros(potential.dim), draws=500, seed=1, progress=False
    )
    draws = run.draws.reshape(-1, potential.dim)
    truth = np.tensordot(potential.truth, scaled, axes=1)
    mean = np.tensordot(draws.mean(axis=0), scaled, axes=1)
    covariance = np.cov(draws.T)
    sd = np.sqrt(np.einsum("kij,kl,lij->ij", scaled, covariance, scaled))
    pressure = potential.flow.solve(potential.truth).solution
    extent = np.abs(truth).max()
    figure, (first, second, third, fourth) = plt.subplots(
        1, 4, figsize=(10.4, 2.5), layout="constrained", sharey=True
    )
    panel(figure, first, truth, "behind the data", (-extent, extent), "PuOr", r"$\log c$")
    panel(figure, second, pressure, "its pressure, and data", (0, 1), "viridis", "$u$")
    places = np.linspace(0, 1, potential.observations)
    second.plot(*np.meshgrid(places, places), ".", color="white", ms=3, mec=BLACK, mew=0.3)
    second.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    panel(figure, third, mean, "posterior mean", (-extent, extent), "PuOr", r"$\log c$")
    panel(figure, fourth, sd, "posterior sd", (0, None), "cividis", r"$\log c$")
    first.set_ylabel("$x_2$")
    save(figure, "elliptic-pde")


if __name__ == "__main__":
    main()
