"""A notebook for teaching: its cells one after another, and what each shows."""

from __future__ import annotations

CELLS = """
import numpy as np, surrokit as sk
tosses, heads = 20, 14
---
def log_density(p):
    return heads * np.log(p) + (tosses - heads) * np.log1p(-p)
---
target = sk.potential(log_density=log_density, parameters={"p <of heads>": sk.interval(0, 1)})
---
target
---
run = sk.sample(target, seed=1)
---
run
---
run.summary()
---
run.expectation(lambda q: q[0] > 0.5)
"""


def shown(cell, names):
    """Run a cell, and return what its last line shows."""
    *before, last = cell.strip().splitlines()
    try:
        made = compile(last, "cell", "eval")
    except SyntaxError:
        exec(cell, names)
        return None
    exec("\n".join(before), names)
    return eval(made, names)


def test_a_lesson(account):
    names = {}
    results = [shown(cell, names) for cell in CELLS.split("---")]
    pages = [each._repr_html_() for each in results if hasattr(each, "_repr_html_")]
    assert len(pages) >= 3
    assert all("<of heads>" not in page for page in pages)
    assert sum("&lt;of heads&gt;" in page for page in pages) >= 3
    run = account(names["run"])
    assert abs(run.draws.mean() - 15 / 22) < 0.01
    assert abs(results[-1].value - 0.961) < 0.02
