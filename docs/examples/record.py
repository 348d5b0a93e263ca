"""Run the commands and scripts that the pages show, and write what they print to ``output``.

Run it after a change that alters draws or tables: ``python docs/examples/record.py``.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).parent
COMMANDS = {
    "lynx_hare": "surrokit sample lynx-hare --seed 1 --compare",
    "hundred_calls": "surrokit sample lynx-hare --max-calls 150 --seed 1",
    "coffee": "surrokit sample coffee.py:smooth --seed 1",
}
SAMPLE = "surrokit sample line.py:target --surrogate bowl --warmup 400 --draws 500 --seed 1"
SESSIONS = {
    "plugin": {
        "new": "surrokit new plugin bowl",
        "shown": "surrokit plugins surrogate bowl",
        "tested": "python -m pytest -q surrokit-bowl",
        "sampled": SAMPLE,
        "tested_again": "python -m pytest -q surrokit-bowl",
        "sampled_again": SAMPLE,
    },
    "reproduce": {
        "rows": "surrokit reproduce figure-1/gp figure-1/additive/10",
        "all": "surrokit reproduce figure-1",
        "more": "surrokit reproduce figure-1/gp --set n_data_sets=30",
    },
}
"""Commands that are typed one after the other in one folder."""

SCRIPTS = (
    "expensive_model",
    "own_target",
    "save",
    "give_a_target",
    "unknown_noise",
    "paper_scheme",
    "traps",
    "adaptive",
    "scikit_learn",
    "posterior_estimators",
    "regression",
    "loans",
)
ADAPTERS = ("jax_enzyme", "numpyro_schools", "pymc_schools", "bambi_pupils", "stan_schools")
"""Scripts that need other libraries; each is recorded where it is named."""


def write(name: str, text: str) -> None:
    """Write one output."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    (HERE / "output" / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(name)


def record_session(name: str, commands: dict[str, str]) -> None:
    """Record what commands print that are typed one after the other in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        shutil.copy(HERE / "line.py", here)
        plugin = here / "surrokit-bowl"
        paths = os.pathsep.join([folder, str(plugin), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "100"}
        for step, command in commands.items():
            if step == "tested_again":
                shutil.copy(HERE / "surrokit_bowl.py", plugin)
            done = subprocess.run(
                command.split(), capture_output=True, text=True, cwd=folder, env=environment
            )
            if step == "new":
                announce(plugin)
            write(f"{name}.{step}", f"$ {command}\n{done.stdout or done.stderr}")


def announce(plugin: Path) -> None:
    """Have an entry point found as if the plugin were installed, without pip and a network."""
    known = plugin / "surrokit_bowl-0.1.0.dist-info"
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: surrokit-bowl\nVersion: 0.1.0\n")
    (known / "entry_points.txt").write_text("[surrokit]\nbowl = surrokit_bowl\n")


def record_command(name: str, command: str) -> None:
    """Record what a command prints; warnings of the target are left out."""
    done = subprocess.run(command.split(), capture_output=True, text=True, cwd=HERE, check=False)
    printed = done.stdout or done.stderr
    write(name, f"$ {command}\n{printed}")


def record_script(name: str) -> None:
    """Record what each section of a script prints."""
    source = (HERE / f"{name}.py").read_text(encoding="utf-8")
    pieces = re.split(r"^# \[(.*)\]$", source, flags=re.MULTILINE)
    scope = {"__name__": "recorded"}
    exec(compile(pieces[0], name, "exec"), scope)
    for section, code in zip(pieces[1::2], pieces[2::2], strict=True):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, section, "exec"), scope)
        if printed.getvalue() and not (name == "save" and section == "save"):
            write(f"{name}.{section.replace(' ', '_')}", printed.getvalue())


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    os.environ["SURROKIT_DISABLE_PLUGINS"] = "toy"  # what a reader sees who has not installed it
    (HERE / "output").mkdir(exist_ok=True)
    chosen = sys.argv[1:] or [*COMMANDS, *SESSIONS, *SCRIPTS]
    warnings.simplefilter("ignore")
    for each in chosen:
        if each in COMMANDS:
            record_command(each, COMMANDS[each])
        if each in SESSIONS:
            record_session(each, SESSIONS[each])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for each in chosen:
            if each in SCRIPTS + ADAPTERS:
                record_script(each)
        os.chdir(HERE)
