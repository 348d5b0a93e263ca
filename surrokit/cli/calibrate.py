"""``surrokit calibrate``: ranks of true parameters for simulated data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from surrokit.cli import options
from surrokit.cli.target import parse_settings, resolve_target
from surrokit.errors import ConfigurationError
from surrokit.output.console import say
from surrokit.output.files import check_folder, write_json

NOT_UNIFORM = 3  #: Exit status where ranks are not uniform.


@click.command("calibrate", short_help="Check posteriors of simulated data.")
@click.argument("target")
@click.option("--n", default=200, show_default=True, help="Simulate so many data sets.")
@options.number(
    "--max-calls", help="Make no more exact calls than so many.  [default: 15 for each data set]"
)
@click.option("--surrogate", help="Learn with this surrogate.  [default: a quick one first]")
@options.whole("--seed", help="Seed the random numbers, for reproducible ranks.")
@options.settings(help="Set what the target is made with, such as target.path=FILE; repeatable.")
@options.with_workers
@options.file("--picture", help="Draw the ranks here (.svg, .png, .pdf).")
@options.json_path(help="Write the figures as JSON here.")
def calibrate_command(
    target: str,
    n: int,
    max_calls: float | None,
    surrogate: str | None,
    seed: int | None,
    settings: tuple[str, ...],
    one_by_one: bool,
    picture: Path | None,
    json_path: Path | None,
    **workers: Any,
) -> None:
    """Check whether posteriors of TARGET, of a forward map with data and priors, are calibrated.

    Data are simulated at draws of the prior. The exit status is 3 where ranks of the true
    parameters are not uniform.
    """
    from surrokit.calibration import calibrate
    from surrokit.compute import Compute
    from surrokit.model.model import one_by_one as in_single_rows

    for file in (picture, json_path):
        if file is not None:
            check_folder(file)
    parts = parse_settings(settings)
    exact = resolve_target(target, parts.pop("target", {}))
    if parts:
        raise ConfigurationError(
            f"calibrate has no part {next(iter(parts))!r} to set; write target.NAME=VALUE"
        )
    given = {name: value for name, value in workers.items() if value is not None}
    found = calibrate(
        in_single_rows(exact) if one_by_one else exact,
        n=n,
        max_calls=max_calls,
        surrogate=surrogate,
        compute=Compute(**given),
        seed=seed,
    )
    say(found)
    if picture is not None:
        found.plot().savefig(picture)
        say(f"picture written to {picture}")
    if json_path is not None:
        write_json(json_path, found.to_dict())
    if any(each.warns for each in found.verdict.named("ranks")):
        sys.exit(NOT_UNIFORM)
