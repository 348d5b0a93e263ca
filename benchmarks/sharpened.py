"""What ``sharpen`` makes of a thousand sub-chain draws.

Each repeat explores, learns and draws anew. Its means, plain and sharpened, are compared with the
average of all repeats' sharpened means: errors are in posterior standard deviations, and a mean is
worth as many independent draws as would have its scatter. It asserts nothing.

    python benchmarks/sharpened.py --repeats 40 --folder sharpened

Repeats are kept in the folder, and are not done again.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import click
import numpy as np

import surrokit as sk


def repeat(name: str, draws: int, seed: int) -> dict[str, np.ndarray]:
    """Return means and errors of one run of four chains."""
    run = sk.sample(
        name,
        sampler="sub-chain",
        surrogate="additive",
        explorer="rounds",
        draws=draws // 4,
        seed=seed,
        progress=False,
    )
    plain, sharp = run.summary(), sk.sharpen(run, seed=seed)
    if sharp.sharpened is None:
        raise click.ClickException(f"seed {seed}: {sharp.verdict.named('sharpen')[0].message}")
    figures = sharp.sharpened.figures
    low, high = figures.mean.interval()
    return {
        "plain": plain["mean"],
        "sharp": figures.mean.value,
        "told": figures.mean.error,
        "half": 0.5 * (high - low),
        "sd": figures.sd.value,
        "calls": np.array(run.total_calls),
    }


@click.command()
@click.option("--target", default="lynx-hare", show_default=True)
@click.option("--draws", default=1000, show_default=True, help="Of all chains together.")
@click.option("--repeats", default=10, show_default=True)
@click.option("--folder", default="sharpened", show_default=True, type=click.Path(path_type=Path))
def main(target: str, draws: int, repeats: int, folder: Path) -> None:
    """Print errors of means, plain and sharpened."""
    warnings.simplefilter("ignore", sk.errors.SamplingWarning)
    folder.mkdir(exist_ok=True)
    found = []
    for seed in range(1, repeats + 1):
        path = folder / f"{target}-{draws}-{seed}.npz"
        if not path.exists():
            np.savez(path, **repeat(target, draws, seed))
        with np.load(path) as kept:
            found.append(dict(kept))
    plain, sharp, told, half, sds, calls = (
        np.array([each[name] for each in found])
        for name in ("plain", "sharp", "told", "half", "sd", "calls")
    )
    sd, truth, more = sds.mean(axis=0), sharp.mean(axis=0), repeats / (repeats - 1)
    click.echo(f"{target}: {repeats} runs of {draws} draws, {calls.mean():.0f} exact calls each")
    for name, means in (("plain", plain), ("sharpened", sharp)):
        square = np.square((means - truth) / sd).mean(axis=0) * more
        click.echo(
            f"{name:10} rms error {np.sqrt(square.min()):.4f} to {np.sqrt(square.max()):.4f} sd, "
            f"worth {1.0 / square.max():.0f} to {1.0 / square.min():.0f} independent draws"
        )
    hits = np.abs(sharp - truth) <= half * np.sqrt((repeats - 1) / repeats)
    click.echo(f"told {np.mean(told / sd):.4f} sd; {hits.mean():.1%} of the 95 % intervals hold")


if __name__ == "__main__":
    main()
