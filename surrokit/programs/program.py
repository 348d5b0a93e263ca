"""A program as functions of one position, such as targets are made of."""

from __future__ import annotations

import math
from pathlib import Path

import attrs

from surrokit.arguments import is_number
from surrokit.coordinates.parameters import Parameters
from surrokit.errors import ConfigurationError
from surrokit.programs.call import Caller
from surrokit.programs.command import Command
from surrokit.programs.exchange import ask, read_answer
from surrokit.types import FloatArray


@attrs.frozen(kw_only=True)
class Program:
    """Evaluates positions by an external program, one process for each call.

    Its methods raise :class:`~surrokit.errors.ProgramError` where the program fails, TimeoutError
    where it takes too long, and :class:`~surrokit.errors.ResultTypeError` where it answers with
    something else than what it was asked for.

    Parameters
    ----------
    caller
        Starts it, and reads what it writes.
    named
        Names and shapes of its parameters, if the user gave names.
    """

    caller: Caller
    named: Parameters | None = None

    @classmethod
    def read(
        cls,
        command: object,
        *,
        named: Parameters | None,
        timeout: float | None,
        keep_failed: str | Path | None,
        folder: str | Path | None,
    ) -> Program:
        """Return the program of a command.

        Parameters
        ----------
        command, timeout, keep_failed, folder
            As for :func:`command_potential`.
        named
            Names and shapes of its parameters, if the user gave names.

        Raises
        ------
        ConfigurationError
            If there is no such program, or a setting is not of its kind.
        """
        if timeout is not None and not (is_number(timeout) and 0.0 < timeout < math.inf):
            raise ConfigurationError(
                f"timeout must be a number of seconds above 0, got {timeout!r}"
            )
        here = Path.cwd() if folder is None else Path(folder).absolute()
        kept = None if keep_failed is None else here / keep_failed
        caller = Caller(command=Command.read(command, here), timeout=timeout, keep_failed=kept)
        return cls(caller=caller, named=named)

    def answer(
        self, position: FloatArray, *wanted: str, weights: FloatArray | None = None
    ) -> dict[str, FloatArray]:
        """Return what is wanted at a position of shape (dim,), by name.

        Parameters
        ----------
        position : ndarray of shape (dim,)
            The position.
        *wanted
            Some of ``log_density``, ``gradient``, ``outputs``, ``jacobian`` and ``vjp``.
        weights : ndarray of shape (m,), optional
            Weights of the outputs, for ``vjp``.
        """
        question = ask(position, wanted, named=self.named, weights=weights)
        with self.caller.folder() as folder:
            text = self.caller.call(folder, question)
            return read_answer(text, wanted, dim=len(position), who=self.caller.command.text)

    def log_density(self, position: FloatArray) -> FloatArray:
        """Return the log density, shape ()."""
        return self.answer(position, "log_density")["log_density"]

    def log_density_and_gradient(self, position: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log density, shape (), and its gradient, shape (dim,), from one call."""
        answer = self.answer(position, "log_density", "gradient")
        return answer["log_density"], answer["gradient"]

    def outputs(self, position: FloatArray) -> FloatArray:
        """Return the outputs, shape (m,)."""
        return self.answer(position, "outputs")["outputs"]

    def jacobian(self, position: FloatArray) -> FloatArray:
        """Return the derivatives of the outputs, shape (m, dim)."""
        return self.answer(position, "jacobian")["jacobian"]

    def outputs_and_jacobian(self, position: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the outputs, shape (m,), and their derivatives, shape (m, dim), from one call."""
        answer = self.answer(position, "outputs", "jacobian")
        return answer["outputs"], answer["jacobian"]

    def vjp(self, position: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the gradient of the outputs' weighted sum, shape (dim,)."""
        return self.answer(position, "vjp", weights=weights)["vjp"]

    def give_up(self) -> None:
        """End all calls in progress."""
        self.caller.in_flight.end_all()
