"""A program may leave anything in the place of its answer; plain files of bounded size are read."""

from __future__ import annotations

import os

import numpy as np
import pytest

import surrokit as sk
from surrokit.errors import ResultTypeError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes, links and devices of POSIX")

POSITION = np.zeros((1, 2))


def cause_of(folder, lines):
    (folder / "model.sh").write_text(lines)
    command = "sh model.sh {input} {output}"
    target = sk.command_potential(command, dim=2, folder=folder, timeout=10.0)
    with pytest.raises(ResultTypeError) as raised:
        target.value(POSITION)
    return str(raised.value)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ('ln -s "{secret}" "$2"', "it is a link"),
        ('ln -s /dev/zero "$2"', "it is a link"),
        ('mkdir "$2"', "it is no plain file"),
        ('mkfifo "$2"; (exec 3<>"$2"; echo "{answer}" >&3; sleep 1) & sleep 0.1', "no plain file"),
        ('truncate -s 100000000 "$2"', "it has more than 67108864 bytes"),
        ('mkfifo pipe; mv pipe stderr; ln -s "{secret}" "$2"', "it is a link"),
    ],
    ids=["link", "device", "folder", "pipe", "large", "errors"],
)
def test_what_is_no_plain_file_is_not_read(tmp_path, lines, why):
    secret = tmp_path / "secret"
    secret.write_text('{"log_density": -1.0}')
    words = lines.replace("{secret}", str(secret)).replace("{answer}", '{\\"log_density\\": -1.0}')
    assert why in cause_of(tmp_path, words)


def test_an_answer_that_is_deep_is_no_json(tmp_path):
    (tmp_path / "deep").write_text("[" * 200_000)
    assert "is no JSON" in cause_of(tmp_path, f'cp "{tmp_path / "deep"}" "$2"')
