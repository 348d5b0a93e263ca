"""Regressions from tables: ``surrokit glm`` samples them, ``surrokit predict`` predicts rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from surrokit.cli.options import FILE, file, number, whole
from surrokit.cli.target import parse_settings
from surrokit.errors import ConfigurationError
from surrokit.output.console import plain_table, terminal
from surrokit.output.files import check_folder

if TYPE_CHECKING:
    from surrokit.predictive.runs import Kind

_OWN: tuple[click.Parameter, ...] = (
    click.Argument(["formula"]),
    click.Argument(["data"], type=FILE),
    click.Option(
        ["--family"],
        required=True,
        help="Give the response this family, such as poisson or logistic.",
    ),
    click.Option(
        ["--prior"],
        multiple=True,
        metavar="SD|NAME=[MEAN:]SD",
        help="Set a normal prior of all coefficients but the intercept, or of one; repeatable.  "
        "[default: flat]",
    ),
    click.Option(
        ["--intercept-prior"],
        metavar="[MEAN:]SD",
        help="Set a normal prior of the intercept.  [default: flat]",
    ),
    click.Option(["--offset"], metavar="COLUMN", help="Add this column to the predictors."),
    click.Option(["--weights"], metavar="COLUMN", help="Count each row so often."),
    click.Option(
        ["--event"],
        metavar="COLUMN",
        help="Read here whether a time is an event (1) or censored (0).",
    ),
    click.Option(
        ["--levels"], metavar="LEVEL,LEVEL,...", help="Order the levels of an ordinal response so."
    ),
    click.Option(
        ["--drop-missing"], is_flag=True, help="Leave out rows that lack a value that is used."
    ),
)


def glm_command(sample: click.Command) -> click.Command:
    """Return the command, with all options of ``surrokit sample``, which is given."""

    @click.pass_context
    def glm(
        context: click.Context,
        /,
        formula: str,
        data: Path,
        prior: tuple[str, ...],
        intercept_prior: str | None,
        levels: str | None,
        drop_missing: bool,
        settings: tuple[str, ...],
        **rest: Any,
    ) -> None:
        """Draw the coefficients of FORMULA, a regression, for the table DATA (.csv, .parquet).

        For example: surrokit glm "visits ~ age + C(clinic)" visits.csv --family poisson. Settings
        of the family are given by --set, such as target.shape=1.5. FORMULA is evaluated as Python
        code.
        """
        from surrokit.tables.frames import read_table
        from surrokit.tables.glm import glm as regression

        given = {name: rest.pop(name) for name in ("family", "offset", "weights", "event")}
        target = regression(
            formula,
            read_table(data),
            prior=_priors(prior),
            intercept_prior=None if intercept_prior is None else _prior(intercept_prior),
            levels=None if levels is None else [level.strip() for level in levels.split(",")],
            na_action="drop" if drop_missing else "raise",
            **given,
            **parse_settings(settings).get("target", {}),
        )
        others = tuple(item for item in settings if not item.startswith("target."))
        context.invoke(sample, target=target, settings=others, **rest)

    own = {parameter.name for parameter in _OWN} | {"target"}
    shared = [parameter for parameter in sample.params if parameter.name not in own]
    return click.Command(
        "glm",
        short_help="Draw the coefficients of a regression.",
        params=[*_OWN, *shared],
        callback=glm,
        help=glm.__doc__,
    )


def _priors(given: tuple[str, ...]) -> Any:
    if len(given) == 1 and "=" not in given[0]:
        one = _prior(given[0])
        if isinstance(one, tuple):
            raise ConfigurationError(
                f"--prior {given[0]} has a mean, but no name; write NAME={given[0]}"
            )
        return one
    parts = [item.rpartition("=") for item in given]
    if not all(name for name, _, _ in parts):
        raise ConfigurationError(
            f"--prior takes one SD, or NAME=SD and NAME=MEAN:SD again and again, got "
            f"{' and '.join(given)}"
        )
    return {name: _prior(value) for name, _, value in parts} or None


def _prior(text: str) -> float | tuple[float, float]:
    mean, colon, sd = text.rpartition(":")
    try:
        return (float(mean), float(sd)) if colon else float(sd)
    except ValueError:
        raise ConfigurationError(
            f"a prior must be a standard deviation or MEAN:SD, got {text!r}"
        ) from None


@click.command(short_help="Predict rows by a regression's run.")
@click.argument("path", metavar="FILE", type=FILE)
@click.argument("new", type=FILE)
@click.option(
    "--kind",
    type=click.Choice(["mean", "response"]),
    default="mean",
    show_default=True,
    help="Means of the response (probabilities of classes), or new responses with their scatter.",
)
@number("--interval", default=0.9, show_default=True, help="Probability of the intervals.")
@click.option("--offset", metavar="COLUMN", help="Known parts of predictors.  [default: the fit's]")
@whole("--seed", help="Seed, for reproducible new responses.")
@file("--out", metavar="TABLE", help="Write the predictions (.csv).")
def predict(
    path: Path,
    new: Path,
    kind: Kind,
    interval: float,
    offset: str | None,
    seed: int | None,
    out: Path | None,
) -> None:
    """Predict the rows of the table NEW by the regression whose run wrote FILE.

    FILE is that of "surrokit glm ... --path FILE". For example: surrokit predict run.surrokit
    new.csv --interval 0.9 --out predictions.csv. Nothing in FILE is run as code.
    """
    from surrokit.sessions import open_run
    from surrokit.tables.frames import read_table

    if out is not None:
        if out.suffix.lower() != ".csv":
            raise ConfigurationError(
                f"predictions are written as .csv, got {out.name!r}; change the ending"
            )
        check_folder(out)
    run = open_run(path)
    found = run.predict(read_table(new), kind=kind, interval=interval, offset=offset, seed=seed)
    if out is not None:
        found.to_csv(out, index_label="row")
        click.echo(f"predictions of {len(found)} rows written to {out}")
        return
    table, most = plain_table(["row"], list(found.columns)), 20
    for row in found.head(most).itertuples():
        cells = [cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row[1:]]
        table.add_row(str(row[0]), *cells)
    terminal().print(table)
    if (left := len(found) - most) > 0:
        click.echo(f"{left} more rows; --out predictions.csv writes all of them")
    for finding in run.verdict.warnings:
        click.echo(f"Warning: {finding.message}.", err=True)
