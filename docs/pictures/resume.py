"""A run that is killed, resumed and extended, as another process sees it in its file."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from style import BLACK, BLUE, GREEN, GREY, ORANGE, save

import surrokit as sk
from surrokit.errors import LedgerError

SECONDS = 0.02
PARTS = {"sampler": "sub-chain", "surrogate": "additive", "explorer": "rounds", "seed": 1}
SESSIONS = {
    "begin": "sk.sample(target, path=...)",
    "resume": "sk.resume(path, target)",
    "extend": "sk.resume(..., draws=200)",
}
KILLED = 300


def model(q: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the potential of a curved density and its gradient, after a while."""
    time.sleep(SECONDS)
    away = q[1] - 0.3 * (q[0] ** 2 - 1.0)
    slope = np.array([q[0] - 0.6 * q[0] * away / 0.25, away / 0.25])
    return 0.5 * q[0] ** 2 + 0.5 * away**2 / 0.25, slope


TARGET = sk.potential(value_and_gradient=model, parameters={"x": None, "y": None})


def work(session: str, path: str) -> None:
    """Do what one process does."""
    if session == "begin":
        sk.sample(TARGET, draws=100, path=path, progress=False, **PARTS)
    else:
        draws = 200 if session == "extend" else None
        sk.resume(path, TARGET, draws=draws, progress=False)


def look(path: Path) -> tuple[int, int]:
    """Return the calls made and the draws in the file."""
    try:
        with sk.Ledger(path) as ledger:
            calls = len(ledger)
        return calls, sk.open_run(path).draws.shape[1] * 4
    except LedgerError:
        return 0, 0


def watch(session: str, path: Path, began: float) -> np.ndarray:
    """Run a process, and return seconds, calls and draws; kill the first one half-way."""
    process = subprocess.Popen([sys.executable, __file__, session, str(path)])
    rows = []
    while process.poll() is None:
        rows.append((time.perf_counter() - began, *look(path)))
        if session == "begin" and rows[-1][1] >= KILLED:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        time.sleep(0.05)
    rows.append((time.perf_counter() - began, *look(path)))
    return np.array(rows)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(*sys.argv[1:])
        sys.exit()
    path = Path(tempfile.mkdtemp()) / "run.surrokit"
    began = time.perf_counter()
    seen = {session: watch(session, path, began) for session in SESSIONS}
    whole = sk.sample(TARGET, draws=200, progress=False, **PARTS)
    same = np.array_equal(sk.open_run(path).draws, whole.draws)
    paid = int(seen["extend"][-1, 1])
    print(f"same draws: {same}; {paid} calls in the file, {whole.total_calls} without a kill")

    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8), layout="constrained")
    colours = dict(zip(SESSIONS, (BLUE, GREEN, ORANGE), strict=True))
    for session, rows in seen.items():
        for panel, column in ((left, 1), (right, 2)):
            panel.plot(rows[:, 0], rows[:, column], color=colours[session], label=SESSIONS[session])
    killed = seen["begin"][-1]
    left.plot(killed[0], killed[1], "x", ms=8, color=BLACK)
    left.annotate(
        "kill -9",
        killed[:2],
        xytext=(-8, 6),
        ha="right",
        textcoords="offset points",
        fontsize=8,
    )
    left.set(xlabel="seconds", ylabel="exact calls in the file", title="calls, as others see them")
    right.set(xlabel="seconds", ylabel="draws in the file", title="draws, as others see them")
    left.legend(loc="lower right", fontsize=8)
    text = "equal to the bit to those\nof a run without a kill" if same else "not the same draws"
    right.text(0.03, 0.92, text, transform=right.transAxes, fontsize=8, color=GREY, va="top")
    save(figure, "resume")
