"""``surrokit predict``: what the run in a file predicts of new rows."""

from __future__ import annotations

from pathlib import Path

import click

from surrokit.errors import ConfigurationError

_SHOWN = 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(["mean", "response"]),
    default="mean",
    show_default=True,
    help="Means of the response (probabilities of classes), or new responses with their scatter.",
)
@click.option(
    "--interval", type=float, default=0.9, show_default=True, help="Probability of the intervals."
)
@click.option("--offset", metavar="COLUMN", help="Known parts of predictors.  [default: the fit's]")
@click.option("--seed", type=int, default=None, help="Seed, for reproducible new responses.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="TABLE", help="Write the predictions (.csv)."
)
def predict(
    file: Path,
    new: Path,
    kind: str,
    interval: float,
    offset: str | None,
    seed: int | None,
    out: Path | None,
) -> None:
    """Predict the rows of the table NEW by the regression whose run wrote FILE.

    FILE is that of "surrokit glm ... --path FILE". For example: surrokit predict run.surrokit
    new.csv --interval 0.9 --out predictions.csv. Nothing in FILE is run as code.
    """
    from surrokit.output.saving import check_folder
    from surrokit.sessions import open_run
    from surrokit.tables.files import read_table

    if out is not None:
        if out.suffix.lower() != ".csv":
            raise ConfigurationError(
                f"predictions are written as .csv, got {out.name!r}; change the ending"
            )
        check_folder(out)
    run = open_run(file)
    found = run.predict(read_table(new), kind=kind, interval=interval, offset=offset, seed=seed)
    if out is not None:
        found.to_csv(out, index_label="row")
        click.echo(f"predictions of {len(found)} rows written to {out}")
        return
    _print(found)
    for finding in run.verdict.warnings:
        click.echo(f"Warning: {finding.message}.", err=True)


def _print(found: object) -> None:
    from surrokit.output.console import plain_table, terminal

    columns = list(found.columns)  # type: ignore[attr-defined]
    table = plain_table(["row"], columns)
    shown = found.head(_SHOWN)  # type: ignore[attr-defined]
    for row in shown.itertuples():
        cells = [cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row[1:]]
        table.add_row(str(row[0]), *cells)
    terminal().print(table)
    left = len(found) - len(shown)  # type: ignore[arg-type]
    if left:
        click.echo(f"{left} more rows; --out predictions.csv writes all of them")
