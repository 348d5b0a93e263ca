"""Parts on the command line: ``surrokit plugins`` lists them, and ``bench`` compares them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, cast

import attrs
import click

from surrokit.cli import options
from surrokit.cli.target import name_or_target, parse_settings, specs_of
from surrokit.errors import ConfigurationError
from surrokit.output.console import plain_table, say, terminal
from surrokit.output.files import check_folder, plain, write_json
from surrokit.registry.catalogue import default_catalogue
from surrokit.registry.components import (
    COMPUTED,
    KINDS,
    REQUIRED,
    Component,
    Kind,
    Setting,
    without_markup,
)


@click.command(short_help="List the parts, or show the settings of some.")
@click.argument("names", nargs=-1)
@options.json_path(help="Also write JSON here.")
def plugins(names: tuple[str, ...], json_path: Path | None) -> None:
    """List every part: its kind, name and plugin; or show the settings of the parts NAMES.

    A kind before them, such as "sampler hmc", leaves out parts of other kinds with these names.
    """
    catalogue = default_catalogue()
    kind = next((kind for kind in KINDS if names[:1] == (kind,)), None)
    if len(names) == 1 and any(names[0] == name for _, name in catalogue.entries):
        kind = None  # a word alone that is both a kind and a name is the name
    parts = catalogue.find(names if kind is None else names[1:], kind)
    shows_settings = len(names) > (kind is not None)
    rows = part_rows(parts) if shows_settings or json_path is not None else []
    if shows_settings:
        _print_settings(rows)
    else:
        table = plain_table(("kind", "name", "plugin", "what it is"))
        for part in parts:
            table.add_row(part.kind, part.name, part.plugin, part.summary)
        terminal().print(table)
    if json_path is not None:
        write_json(json_path, rows)


def part_rows(parts: Iterable[Component]) -> list[dict[str, Any]]:
    """Return parts as plain data: kind, name, plugin, summary, settings, references.

    This imports the modules of the parts, which hold the settings.
    """
    return [
        {
            "kind": part.kind,
            "name": part.name,
            "plugin": part.plugin,
            "summary": part.summary,
            "settings": {name: _row(part, each) for name, each in part.settings().items()},
            "references": list(part.references),
        }
        for part in parts
    ]


def _row(component: Component, setting: Setting) -> dict[str, Any]:
    default: Any = setting.default
    takes, part = setting.limits or setting.type, component.parts.get(setting.name)
    if part is not None:
        default = part.default or f"the run's own {part.kind}"
        takes = f"a part of kind {part.kind}"
    elif default is REQUIRED:
        default = "required"
    elif default is COMPUTED:
        default = "from the others"
    elif not isinstance(default, bool | int | float | str | None):
        default = str(default)
    return {"default": default, "takes": takes, "help": setting.help}


def _print_settings(rows: Iterable[dict[str, Any]]) -> None:
    console = terminal()
    for row in rows:
        console.print(f"{row['kind']} {row['name']}, of {row['plugin']}: {row['summary']}")
        for reference in row["references"]:
            console.print(f"  {reference}")
        table = plain_table(("setting", "default", "takes", "what it is"))
        for name, setting in row["settings"].items():
            help_ = without_markup(setting["help"])
            table.add_row(name, str(setting["default"]), setting["takes"], help_)
        if row["settings"]:
            console.print(table)
        console.print()


@click.command(short_help="Compare parts over targets and seeds.")
@options.several(
    "--target",
    "targets",
    required=True,
    help="Run on this target, given as to sample; repeatable.",
)
@options.together(
    *(
        options.several(f"--{kind}", help=f"Compare this {kind} with others; repeatable.")
        for kind in options.NAMED
    )
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Repeat each run with so many seeds.",
)
@options.whole("--max-calls", help="Stop each run before there are more exact calls.")
@options.whole("--warmup", help="Tune each run in so many iterations.  [default: 1000]")
@options.whole("--draws", help="Keep so many draws of each chain.  [default: 1000]")
@click.option(
    "--reference-draws",
    type=click.IntRange(min=100),
    default=2500,
    show_default=True,
    help="Keep so many draws of each chain in the exact run that others are compared to.",
)
@options.settings(help="Set a part's setting in all runs, as surrogate.n_nodes=500; repeatable.")
@options.json_path(help="Write all runs here.")
def bench(
    targets: tuple[str, ...],
    seeds: int,
    reference_draws: int,
    settings: tuple[str, ...],
    json_path: Path | None,
    **given: Any,
) -> None:
    """Compare parts over targets and seeds: which are right, and how many exact calls they take.

    For example: surrokit bench --surrogate mine --surrogate additive --target lynx-hare --target
    banana. Every combination of the parts named runs on every target. A run is right where its
    means and standard deviations agree with those of a long exact run, which this command makes
    first, within the errors of both; one run in a hundred is called wrong by chance.
    """
    from surrokit.bench import compare, exact_run, rows_of

    if json_path is not None:
        check_folder(json_path)
    set_by_kind = parse_settings(settings)
    of_target = set_by_kind.pop("target", {})
    parts = _combinations({kind: given.pop(kind) or (None,) for kind in options.NAMED}, set_by_kind)
    exact = {name: name_or_target(name, of_target) for name in targets}
    references = {}
    for name, target in exact.items():
        references[name] = run = exact_run(target, reference_draws)
        say(f"{name}: the exact run took {run.total_calls:.0f} calls", err=True)
        for finding in run.verdict.warnings:
            say(f"{name}: the exact run is not sure: {finding.message}", err=True)
    sizes = {name: size for name, size in given.items() if size is not None}
    outcomes = []
    for each in compare(exact, parts, range(1, seeds + 1), references, **sizes):
        outcomes.append(each)
        found = each.failure or ("right" if each.right else f"wrong by {each.error:.2g} sd")
        say(f"{each.target}, {each.parts}, seed {each.seed}: {found}", err=True)
    _print_comparison(rows_of(outcomes))
    if json_path is not None:
        write_json(json_path, plain([attrs.asdict(each) for each in outcomes]))


def _combinations(
    named: dict[str, tuple[str | None, ...]], settings: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return keywords of a run for each combination of parts, by what differs in them."""
    from surrokit.compose import regroup

    if all(names == (None,) for names in named.values()):
        raise ConfigurationError(
            "there is nothing to compare; name parts, such as --surrogate additive --surrogate rbf"
        )
    for kind, names in named.items():
        for name in names:
            if name not in (None, "none"):
                default_catalogue().get(cast(Kind, kind), name)  # or an error, before long runs
    parts = {}
    for chosen in product(*named.values()):
        one = dict(zip(named, chosen, strict=True))
        label = " ".join(name for kind, name in one.items() if name and len(named[kind]) > 1)
        label = label or " ".join(filter(None, chosen))
        parts[label] = regroup(specs_of(one, settings, default_catalogue()))
    return parts


def _print_comparison(rows: list[dict[str, Any]]) -> None:
    titles = ("right", "warned", "wrong unwarned", "error", "calls", "calls/ESS", "seconds")
    table = plain_table(("target", "parts"), titles)
    for row in rows:
        n = row["runs"]
        counts = [f"{row[name]}/{n}" for name in ("right", "warned", "silently_wrong")]
        figures = [f"{row['error']:.2f}", f"{row['calls']:.0f}", f"{row['calls_per_ess']:.3g}"]
        table.add_row(row["target"], row["parts"], *counts, *figures, f"{row['seconds']:.1f}")
    terminal().print(table)
    for row in rows:
        if row["failure"] is not None:
            say(f"{row['target']}, {row['parts']}: {row['failure']}")
    say("error: largest difference of a mean or sd, in posterior sds; medians over seeds")
