"""The README's own target runs as it stands."""

import re
import warnings

import numpy as np


def test_the_target_of_the_readme_is_sampled(root, capsys):
    code = re.search(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)
    scope = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(code[1], "README.md", "exec"), scope)
    run = scope["run"]
    assert run.draws.shape == (4, 1000, 3)
    assert np.all(run.rhat() < 1.01)
    assert "rate" in capsys.readouterr().out
