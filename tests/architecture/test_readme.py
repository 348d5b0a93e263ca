"""The README's own target runs as it stands, and in a minute's tests with fewer iterations."""

import re
import warnings

import numpy as np
import pytest

from surrokit.errors import SamplingWarning


@pytest.mark.parametrize("shortened", [pytest.param(False, marks=pytest.mark.long), True])
def test_the_target_of_the_readme_is_sampled(root, capsys, shortened):
    (code,) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)[:1]
    if shortened:
        assert "warmup=2000" in code
        code = code.replace("warmup=2000", "warmup=300, draws=100")
    scope = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if shortened:
            warnings.simplefilter("ignore", SamplingWarning)
        exec(compile(code, "README.md", "exec"), scope)
    run = scope["run"]
    assert run.draws.shape == (4, 100 if shortened else 1000, 3)
    assert shortened or np.all(run.rhat() < 1.01)
    assert "rate" in capsys.readouterr().out
