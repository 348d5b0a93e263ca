from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.errors import TargetError
from surrokit_problems.logistic import LogisticRegression

DESIGN = [[1.0, 0.3], [1.0, -1.2], [1.0, 0.8]]
RESPONSE = [0, 1, 1]


def test_logistic_from_files_and_from_arrays(tmp_path):
    np.save(tmp_path / "x.npy", DESIGN)
    np.save(tmp_path / "y.npy", RESPONSE)
    position = np.array([[0.2, -0.1]])
    from_files = LogisticRegression(str(tmp_path / "x.npy"), tmp_path / "y.npy")
    assert_allclose(
        from_files.value(position), LogisticRegression(DESIGN, RESPONSE).value(position)
    )


def test_files_that_hold_no_array(tmp_path):
    (tmp_path / "x.npy").write_text("1 2 3")
    for path in (tmp_path / "x.npy", tmp_path / "absent.npy"):
        with pytest.raises(TargetError, match=rf"design must be .*{path.name} could not be read"):
            LogisticRegression(path, RESPONSE)
    with pytest.raises(TargetError, match="response must be an array of numbers"):
        LogisticRegression(DESIGN, ["no", "yes", "yes"])
