"""Pictures of runs: what they show, and what they say of it."""

from __future__ import annotations

import sys

import attrs
import numpy as np
import pytest
from numpy.testing import assert_allclose

from surrokit.errors import ConfigurationError, MissingDependencyError
from surrokit.plots.figure import density, equally_likely, short_name
from surrokit.plots.plots import errors_of

figure_module = pytest.importorskip("matplotlib.figure", reason="pictures are Matplotlib's")


def texts(figure):
    from matplotlib.text import Text

    return [each.get_text() for each in figure.findobj(Text)]


def test_weighted_answers_say_that_they_are(weighted):
    assert "weighted answers, by their weights" in texts(weighted.plot.marginals())


def test_pictures_of_some_parameters(run):
    for name in ("marginals", "surrogate", "cost"):
        figure = getattr(run.plot, name)()
        assert isinstance(figure, figure_module.Figure)
    assert figure._repr_png_()[:4] == b"\x89PNG"
    figure = run.plot.marginals(["w", "a"])
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["w[0]", "w[1]", "a"]


def test_a_marginal_says_its_interval(run):
    low, high = run.highest_density(0.8)[1]
    told = f"{np.median(run['b']):.4g}  [{low:.4g}, {high:.4g}]"
    assert told in texts(run.plot.marginals(["b"], interval=0.8))


def test_a_readers_own_style_does_not_change_a_picture(run):
    import matplotlib.style

    plain = run.plot.marginals(["a"])._repr_png_()
    with matplotlib.style.context(["dark_background", {"savefig.dpi": 300, "font.size": 20}]):
        assert run.plot.marginals(["a"])._repr_png_() == plain


def test_what_cannot_be_shown_is_refused(run, exact_run):
    kept = attrs.evolve(run.kept, draws=run.kept.draws[:, :0], seconds=run.kept.seconds[:0])
    with pytest.raises(ConfigurationError, match="there are no draws to show; draw some first"):
        attrs.evolve(run, kept=kept).plot.marginals()
    with pytest.raises(ConfigurationError, match="there is nothing to show; name parameters"):
        run.plot.marginals([])
    with pytest.raises(ConfigurationError, match="this run has no surrogate to look at"):
        exact_run.plot.surrogate()


def test_constant_numbers_can_be_shown(run):
    draws = run.draws.copy()
    draws[..., 2] = 5.0
    other = attrs.evolve(run, kept=attrs.evolve(run.kept, draws=draws))
    other.plot.marginals(["a", "w[0]"])


def test_costs_have_lines_of_calls_and_of_deployments(run):
    calls, acceptance = run.plot.cost().axes
    used = [kind for kind, n in run.calls.items() if n]
    assert [each.get_text() for each in calls.get_legend().get_texts()] == [
        *used,
        "surrogate deployed",
    ]
    for line, kind in zip(calls.get_lines(), used, strict=False):
        assert line.get_ydata()[-1] == run.calls[kind]
    averages = acceptance.get_lines()[0].get_ydata()
    assert_allclose(averages[-20:].mean(), run.kept.acceptance.mean(), atol=1e-6)


def test_weights_decide_what_is_shown(weighted):
    """Draws are the surrogate's; were weights left out, the shifted ones would show."""
    weights = np.exp(weighted.log_weights.ravel())
    means = (weights[:, None] * weighted.draws.reshape(-1, 2)).sum(axis=0) / weights.sum()
    summary, shown = weighted.summary(), equally_likely(weighted, 1)
    assert_allclose(equally_likely(weighted, 0).mean(), summary["mean"][0], atol=0.01)
    assert_allclose(shown.mean(), means[1], atol=0.1)
    assert_allclose(np.quantile(shown, 0.05), summary["q05"][1], atol=0.02)


def test_densities_are_missing_where_nothing_varies():
    assert density(np.ones(50)) is None
    assert density(np.array([1.0, np.nan, 2.0])) is None
    grid, heights = density(1e200 * np.random.default_rng(1).normal(size=500))
    assert_allclose(np.trapezoid(heights, grid), 1.0, rtol=0.05)


def test_names_are_text_and_no_formulas(hostile, tmp_path, recwarn):
    hostile.plot.marginals().savefig(tmp_path / "marginals.svg")
    assert all("Glyph" in str(each.message) for each in recwarn)
    assert "$x^{2$ \\frac" in texts(hostile.plot.marginals())
    assert short_name("n" * 200) == "n" * 17 + "…" + "n" * 8
    assert short_name("two\nlines") == "two lines"


# --- the surrogate ---


def test_looking_at_a_surrogate_pays_for_nothing(run, target):
    before = dict(run.calls)
    _, errors = errors_of(run)
    at = run.kept.positions.reshape(-1, 4)[::4]
    expected = target.value(at) - run.surrogate.value(at)
    assert_allclose(errors, expected - np.median(expected), atol=1e-8)
    assert run.calls == before


def test_a_wrong_surrogate_is_told(run, target):
    class Wrong:
        dim, capabilities = target.dim, target.capabilities

        def value(self, positions):
            return target.value(positions) + 3.0 * positions[:, 0]

    wrong = attrs.evolve(run, surrogate=Wrong())
    spread = 3.0 * run.kept.positions.reshape(-1, 4)[::4, 0].std()
    assert f"surrogate at draws: error {spread:.2g} nats" in texts(wrong.plot.surrogate())


def test_without_matplotlib_the_message_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'surrokit\[figures\]'"):
        run.plot.cost()
