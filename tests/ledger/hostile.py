"""Reads hostile files, in a process of its own, since an audit hook cannot be removed."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import surrokit as sk
from surrokit.errors import SurrokitError
from surrokit.registry.catalogue import default_catalogue

CANARY = "surrokit_canary"
NAMED = (CANARY, "antigravity", "this", "pty", "turtledemo", "idlelib")
WATCHED = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.fork")
SIZES = {"sampler": "hmc", "chains": 2, "warmup": 4, "draws": 4, "seed": 1}
KINDS = ("sampler", "surrogate", "schedule", "explorer", "correction", "policy", "integrator")

found: list[str] = []
armed = False


def hook(event, arguments):
    if not armed:
        return
    if event == "import" and str(arguments[0]).split(".")[0] in NAMED:
        found.append(f"import {arguments[0]}")
    elif event in WATCHED:
        found.append(f"{event} {arguments}")
    elif event == "exec":
        file = Path(getattr(arguments[0], "co_filename", ""))
        if file.name == "<string>" or file.stem in NAMED or file.parent.name in NAMED:
            found.append(f"exec {file}")


def target():
    return sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), dim=2)


PATHS = (
    *("os.system", "os:system", "subprocess.run", "subprocess.Popen", "builtins.exec"),
    *("builtins.eval", f"{CANARY}.call", f"{CANARY}:call", "antigravity", "this.s", "pty.spawn"),
    *("sklearn.svm.SVR", "numpy.load", "surrokit_sklearn.estimators.polynomial_ridge"),
)
COMMANDS = {"command": "true"}
GIVEN = {"subprocess.run": {"args": "true"}, "subprocess.Popen": {"args": "true"}, "this.s": {}}


def some(rng, deep=2):
    """A hostile value, as a file holds it."""
    path = str(rng.choice(PATHS))
    choices = [
        path,
        {"tuple": [path, {"dict": COMMANDS}]},
        {"dict": {"estimator": path, "parameters": {"dict": COMMANDS}}},
        {"array": [path], "dtype": "O"},
        {"array": [1.0], "dtype": str(rng.choice(["O", "f8,O", "(3,)f8", "V8", "M8[s]", path]))},
        {"dict": COMMANDS},
        {"tuple": []},
        [[path]],
        [None, True, 1e308, -1],
        float(rng.choice([np.nan, np.inf, -1.0, 0.0, 0.5])),
        int(rng.integers(-2, 4)),
        "__import__('os').system('true')",
        None,
    ]
    if deep:
        choices += [{"tuple": [some(rng, deep - 1), some(rng, deep - 1)]}] * 2
        choices += [{"tuple": [name, {"dict": {"estimator": path}}]} for name in ("sklearn", "hmc")]
    return choices[int(rng.integers(len(choices)))]


def part(rng, entries):
    """A kind and a spec of a registered part with hostile settings."""
    entry = entries[int(rng.integers(len(entries)))]
    known = [*entry.settings(), "__class__", "estimator", "factory"]
    names = rng.choice(known, size=int(rng.integers(1, min(len(known), 4) + 1)), replace=False)
    settings = {str(name): some(rng) for name in names}
    if "estimator" in settings:
        path = str(rng.choice(PATHS))
        settings |= {"estimator": path, "parameters": {"dict": COMMANDS}}
    spec = {"tuple": [entry.name, {"dict": settings}]}
    kind = entry.kind if rng.random() < 0.9 else str(rng.choice(KINDS))
    if rng.random() < 0.1:  # a part inside another
        spec = {"tuple": ["sub-chain", {"dict": {"kernel": spec}}]}
        kind = "sampler"
    return kind, spec


def settings_of(rng, entries, targets, settings):
    """Settings of a run with something hostile in them."""
    changed = {**settings, "parts": dict(settings["parts"])}
    for _ in range(int(rng.integers(1, 3))):
        kind, spec = part(rng, entries)
        changed["parts"][kind] = spec
    if rng.random() < 0.3:
        path = str(rng.choice(PATHS))
        estimator = {"estimator": path, "parameters": {"dict": GIVEN.get(path, COMMANDS)}}
        changed["parts"] = {"surrogate": {"tuple": ["sklearn", {"dict": estimator}]}}
    if rng.random() < 0.3:
        other = str(rng.choice(["objects", "safety", "budget", "keep", "target", "differences"]))
        changed[other] = some(rng)
    if rng.random() < 0.3:
        changed["target"] = part(rng, targets)[1] if rng.random() < 0.9 else some(rng)
    if rng.random() < 0.1:
        changed["parts"][str(rng.choice(PATHS))] = some(rng)
    return changed


def write(path, whole, settings, generator=None):
    for beside in path.parent.glob(path.name + "*"):
        beside.unlink()
    shutil.copy(whole, path)
    connection = sqlite3.connect(path)
    text = json.dumps(settings)
    connection.execute("UPDATE facts SET value = ? WHERE name = 'settings'", (text,))
    if generator is not None:
        text = json.dumps(generator)
        connection.execute("UPDATE facts SET value = ? WHERE name = 'generator'", (text,))
    connection.commit()
    connection.close()


def main(n, folder):
    """Print what was imported or called, and errors that are none of surrokit's."""
    global armed
    warnings.simplefilter("ignore")
    folder = Path(folder)
    (folder / f"{CANARY}.py").write_text("def call(*args, **kwargs):\n    return args\n")
    sys.path.insert(0, str(folder))
    catalogue = default_catalogue()
    entries = [e for e in catalogue if e.kind != "potential"]
    targets = [e for e in catalogue if e.kind == "potential"]
    for entry in (*entries, *targets):
        entry.settings()
    run, study = folder / "run", folder / "study"
    sk.sample(target(), path=run, surrogate="additive", progress=False, **SIZES)
    sk.resume(run, target(), draws=5, progress=False)
    sk.study(study, dim=2, gradients=True, **SIZES)
    raw, rng = [], np.random.default_rng(5)
    with sk.Ledger(run) as one, sk.Ledger(study) as other:
        facts, asked = one.facts, other.facts
    armed = True
    for i in range(n):
        of_study = i % 3 == 2
        whole, settings = (study, asked["settings"]) if of_study else (run, facts["settings"])
        generator = (
            {"dict": {**facts["generator"]["dict"], "name": str(rng.choice(PATHS))}}
            if i % 10 == 9
            else None
        )
        write(folder / "a", whole, settings_of(rng, entries, targets, settings), generator)
        readers = {
            "study": lambda: sk.study(folder / "a").ask(),
            "resume": lambda: sk.resume(folder / "a", target(), progress=False),
            "open": lambda: sk.open_run(folder / "a"),
            "alone": lambda: sk.resume(folder / "a", progress=False),
        }
        for name in ("study",) if of_study else ("resume", "open", "alone"):
            try:
                readers[name]()
            except SurrokitError:
                pass
            except Exception as error:
                raw.append(f"{name} {i}: {type(error).__name__}: {error}")
    armed = False
    print(json.dumps({"found": found, "raw": raw}))


if __name__ == "__main__":
    sys.addaudithook(hook)
    with tempfile.TemporaryDirectory() as temporary:
        main(int(sys.argv[1]), temporary)
