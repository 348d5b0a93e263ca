"""The command ``surrokit reproduce``: one experiment, or all of them."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from surrokit.cli.exit_status import INTERRUPTED
from surrokit.errors import ConfigurationError, MissingDependencyError, SurrokitError
from surrokit.experiments.contract import Conditions, Experiment
from surrokit.experiments.outcome import AllReproduced, Reproduction
from surrokit.experiments.report import draw_picture, print_all, print_reproduction
from surrokit.experiments.series import choose_experiments, make_experiments, reproduce_all
from surrokit.experiments.work import reproduce, write_figures
from surrokit.output.console import say
from surrokit.output.json import write_json
from surrokit.output.pictures import write_pictures


@attrs.frozen(kw_only=True)
class Command:
    """Options of the command, without the experiment's own settings.

    Parameters
    ----------
    out
        Folder for all files.
    seed
        Seed of all randomness.
    data
        Folder with the user's data files.
    only
        Rows to do.
    fresh
        Whether to do finished rows again.
    json_path
        Additional file for the JSON.
    """

    out: Path
    seed: int
    data: Path | None = None
    only: tuple[str, ...] = ()
    fresh: bool = False
    json_path: Path | None = None

    def check(self) -> None:
        """Refuse missing folders, before hours are spent.

        Raises
        ------
        ConfigurationError
            If a folder does not exist.
        """
        from surrokit.output.saving import check_folder

        if self.data is not None and not self.data.is_dir():
            raise ConfigurationError(
                f"there is no folder {self.data}; give the one that holds your data files with "
                "--data, or with the environment variable SURROKIT_DATA"
            )
        if self.json_path is not None:
            check_folder(self.json_path)


def reproduce_one(name: str, values: Mapping[str, Any], command: Command) -> int:
    """Reproduce one experiment, print it and write its files; return the exit status.

    Parameters
    ----------
    name
        Name of the experiment.
    values
        Settings of the experiment.
    command
        Options of the command.

    Raises
    ------
    SurrokitError
        If the experiment cannot be done, or its picture cannot be drawn.
    """
    from surrokit.compose import make

    experiment = make("experiment", name, **values)
    command.check()
    outcome = reproduce(
        experiment,
        command.out,
        seed=command.seed,
        only=command.only,
        data=command.data,
        fresh=command.fresh,
    )
    print_reproduction(outcome)
    if command.json_path is not None:
        write_json(command.json_path, outcome.to_dict())
    _tell_figures(outcome, command.out)
    _draw(experiment, outcome, command.out)
    return INTERRUPTED if outcome.interrupted else 0


def _tell_figures(outcome: Reproduction, out: Path) -> None:
    stem = out / outcome.name
    say(f"figures written to {stem}.json and {stem}.txt")


def _draw(experiment: Experiment, outcome: Reproduction, out: Path) -> None:
    figure = draw_picture(experiment, outcome.finished)
    if figure is not None:
        pictures = write_pictures(figure, out / outcome.name)
        say(f"picture written to {' and '.join(map(str, pictures))}")


def reproduce_every(
    names: Iterable[str], settings: Mapping[str, Any], command: Command, *, quick: bool
) -> int:
    """Reproduce all experiments, print and write each as it ends; return the exit status.

    The status is 0 if some row is done and nothing failed unexpectedly, as with ``make -k``.

    Parameters
    ----------
    names
        Names of all experiments.
    settings
        Setting to value, for the experiments that have it.
    command
        Options of the command.
    quick
        Whether to use small sizes.

    Raises
    ------
    ConfigurationError
        If a row or setting does not exist, or a folder cannot be written to.
    """
    from surrokit.registry.catalogue import default_catalogue

    command.check()
    chosen = choose_experiments(list(names), command.only)
    made, not_made = make_experiments(default_catalogue(), chosen, settings, quick=quick)
    publisher = _Publisher(command.out)
    outcome = reproduce_all(
        made,
        command.out,
        publisher.tell,
        conditions=Conditions(seed=command.seed, data=command.data),
        only=chosen,
        fresh=command.fresh,
        failed=_show_error,
        not_made=not_made,
    )
    print_all(outcome)
    for note in publisher.no_pictures:
        say(f"Note: no pictures: {note}")
    if command.json_path is not None:
        write_json(command.json_path, outcome.to_dict())
    return _status(outcome)


class _Publisher:
    """Prints and writes experiments, and remembers why pictures are missing."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self.no_pictures: dict[str, None] = {}

    def tell(self, experiment: Experiment, outcome: Reproduction) -> None:
        write_figures(outcome, self._out)
        print_reproduction(outcome)
        _tell_figures(outcome, self._out)
        try:
            _draw(experiment, outcome, self._out)
        except MissingDependencyError as error:
            self.no_pictures[str(error)] = None
        say()


def _show_error(what: str, error: Exception) -> None:
    if isinstance(error, SurrokitError):
        say(f"Error in {what}: {error}", err=True)
        return
    shown = "".join(traceback.format_exception(error))
    say(f"Error in {what}, which is left out:\n{shown}", err=True)


def _status(outcome: AllReproduced) -> int:
    if outcome.waiting:
        return INTERRUPTED
    return 0 if outcome.n_done and not outcome.failures else 1
