"""One call of a program: what it is asked, what it may answer, and how it fails."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import EvaluationError, ProgramError, ResultTypeError

POSITION = np.array([[0.1 + 0.2, -1e-17]])


def questions(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def cause_of(target, position=POSITION):
    with pytest.raises(EvaluationError) as raised:
        target.value(position)
    return raised.value.causes[0]


@pytest.mark.parametrize("places", [[], ["{input}", "{output}"]])
def test_a_log_density_and_its_gradient_come_from_one_call(model, log, places):
    target = sk.command_potential([*model, *places], gradient=True, dim=2)
    values, gradients = target.value_and_gradient(POSITION)
    x = POSITION[0]
    assert values == sum(x * x / 2 + x**4 / 10)
    assert np.array_equal(gradients[0], x + 0.4 * x**3)
    assert target.value(POSITION) == values
    asked = {"position": [0.30000000000000004, -1e-17]}
    assert questions(log) == [
        {"want": ["log_density", "gradient"], **asked},
        {"want": ["log_density"], **asked},
    ]


def test_names_and_shapes_are_in_the_question(model, log):
    named = {"rate": (0.0, None), "w": sk.real(1)}
    target = sk.command_potential(model, parameters=named)
    target.value(np.array([[np.log(2.0), 3.0]]))
    assert questions(log)[0]["parameters"] == {"rate": 2.0, "w": [3.0]}
    assert questions(log)[0]["position"] == [2.0, 3.0]


def test_a_forward_map_gives_outputs_and_derivatives_in_one_call(model, log):
    settings = {"data": [0.5, 1.0, 0.2], "noise_sd": 0.3, "prior": sk.gaussian_prior(0, 1)}
    target = sk.command_potential(model, jacobian=True, dim=2, **settings)
    outputs, jacobian = target.forward_and_jacobian(POSITION)
    assert (outputs.shape, jacobian.shape) == ((1, 3), (1, 3, 2))
    assert target.capabilities == {"forward", "jacobian", "gradient", "metric"}
    assert [each["want"] for each in questions(log)] == [["outputs", "jacobian"]]
    adjoint = sk.command_potential(model, vjp=True, dim=2, **settings)
    assert np.allclose(
        adjoint.value_and_gradient(POSITION)[1], target.value_and_gradient(POSITION)[1], rtol=1e-14
    )
    asked = [each["want"] for each in questions(log)[1:]]
    assert asked == [["outputs"], ["vjp"], ["outputs", "jacobian"]]
    assert len(questions(log)[2]["weights"]) == 3


def test_scales_of_errors_are_none_of_the_questions(model, log):
    settings = {"data": [0.5, 1.0, 0.2], "noise_sd": "estimate", "dim": 2}
    known = {**settings, "noise_sd": 1.0}
    z = np.insert(POSITION, 2, 0.0, axis=1)
    for derivatives in ({"jacobian": True}, {"vjp": True}):
        gradient = sk.command_potential(model, **derivatives, **settings).value_and_gradient(z)[1]
        expected = sk.command_potential(model, **derivatives, **known).value_and_gradient(POSITION)
        assert np.allclose(gradient[:, :2], expected[1], rtol=1e-13)
    assert all(len(each["position"]) == 2 for each in questions(log))


def test_each_call_has_a_folder_of_its_own(shell, tmp_path):
    target = shell(f"pwd >> {tmp_path}/folders; ls >&2; touch new; exit 1")
    for _ in range(2):
        assert str(cause_of(target)).endswith("standard error: input.json\nstderr\nstdout")
    folders = (tmp_path / "folders").read_text().split()
    assert len(set(folders)) == 2
    assert not any(Path(folder).exists() for folder in folders)


@pytest.mark.parametrize(
    ("lines", "kind", "message"),
    [
        ("echo no licence >&2; exit 3", ProgramError, "ended with exit status 3; standard error: "),
        ("kill -SEGV $$", ProgramError, "was ended by signal SIGSEGV"),
        ("exit 1", ProgramError, "sh model.sh ended with exit status 1$"),
        ("""echo '{"error": "too stiff"}'""", ProgramError, "answered with an error: too stiff"),
        ("", ResultTypeError, "ended well, but printed nothing; it must give JSON"),
        ("echo '[1, 2'", ResultTypeError, "is no JSON: .*should write its answer to {output}"),
        ("echo '[1, 2]'", ResultTypeError, r"must be a JSON object, .* got '\[1, 2\]"),
        ("echo '{}'", ResultTypeError, "'log_density' is not in its answer, which has nothing"),
        ("""echo '{"log_p": 1}'""", ResultTypeError, "in its answer, which has 'log_p'"),
        ("""echo '{"log_density": null}'""", ResultTypeError, "log_density must be numbers"),
        ("""echo '{"log_density": "1"}'""", ResultTypeError, "log_density must be numbers"),
        (r"printf '\377'", ResultTypeError, "its output cannot be read: .*utf-8"),
    ],
)
def test_what_a_program_does_wrong_is_told(shell, lines, kind, message):
    target = shell(lines)
    if kind is ResultTypeError:  # wrong everywhere
        with pytest.raises(ResultTypeError, match=message):
            target.value(POSITION)
    else:
        cause = cause_of(target)
        assert type(cause) is kind
        with pytest.raises(kind, match=message):
            raise cause


def test_the_end_of_a_long_standard_error_is_told(shell):
    lines = "for i in $(seq 1000); do echo line $i >&2; done; exit 1"
    message = str(cause_of(shell(lines)))
    assert message.endswith("line 999\nline 1000")
    assert "; standard error: ... " in message
    assert len(message) < 700


def test_minus_infinity_is_a_density_of_zero_and_needs_no_gradient(shell):
    target = shell("""echo '{"log_density": -Infinity}'""", gradient=True)
    values, gradients = target.value_and_gradient(POSITION)
    assert values == np.inf
    assert np.isnan(gradients).all()


def test_a_program_that_takes_too_long_is_ended_with_those_it_started(shell, tmp_path):
    target = shell("(sleep 1.5; touch late) & sleep 30", timeout=0.2, keep_failed=tmp_path / "kept")
    before = time.monotonic()
    cause = cause_of(target)
    assert isinstance(cause, TimeoutError)
    assert time.monotonic() - before < 10.0
    assert "sh model.sh took longer than timeout=0.2 seconds, and was ended" in str(cause)
    time.sleep(2.0)
    (kept,) = (tmp_path / "kept").iterdir()
    assert not (kept / "late").exists()


def test_files_of_failed_calls_are_kept_where_they_are_wanted(shell, tmp_path):
    kept = tmp_path / "deep" / "kept"
    cause = cause_of(shell("echo out; echo err >&2; exit 1", keep_failed=kept))
    (folder,) = kept.iterdir()
    assert str(cause).endswith(f"standard error: err (its files are in {folder})")
    assert (folder / "stdout").read_text() == "out\n"
    assert json.loads((folder / "input.json").read_text())["position"] == POSITION[0].tolist()
    shell("""echo '{"log_density": 1}'""", keep_failed=kept).value(POSITION)
    assert len(list(kept.iterdir())) == 1


def test_a_program_that_has_gone_since_is_a_failure(tmp_path):
    program = tmp_path / "model"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    target = sk.command_potential("./model", dim=2, folder=tmp_path)
    program.unlink()
    assert "model could not be started: [Errno 2] No such file" in str(cause_of(target))


def test_a_program_has_no_terminal_for_its_input_when_it_reads_a_file(tmp_path):
    code = "import sys, json; assert sys.stdin.read() == ''; print(json.dumps({'log_density': 2}))"
    target = sk.command_potential([sys.executable, "-I", "-S", "-c", code, "{input}"], dim=2)
    assert target.value(POSITION) == -2.0


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")
@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('ln -s /dev/zero "$2"', "output.json is no plain file, or not there"),
        ('mkfifo "$2"', "no plain file"),
        ('truncate -s 100000000 "$2"', "it has more than 67108864 bytes"),
        ("printf '[%.0s' $(seq 60000) > $2", "is no JSON"),
        ("", "not there"),
    ],
    ids=["device", "pipe", "large", "deep", "nothing"],
)
def test_what_is_no_plain_file_is_not_read(tmp_path, lines, why):
    (tmp_path / "model.sh").write_text(lines)
    target = sk.command_potential("sh model.sh {input} {output}", dim=2, folder=tmp_path)
    with pytest.raises(ResultTypeError, match=why):
        target.value(POSITION)
