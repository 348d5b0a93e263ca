"""Regressions from tables: ``surrokit glm`` samples them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from surrokit.cli.options import FILE
from surrokit.cli.target import parse_settings
from surrokit.errors import ConfigurationError

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
