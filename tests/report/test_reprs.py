"""How notebooks show runs and summaries."""

from __future__ import annotations

import attrs
from hostile_names import HOSTILE
from parsed import Parsed

import surrokit as sk
from surrokit.result.finding import Finding, Verdict


def test_a_run_is_shown_with_its_verdict_first(run):
    told = Finding(name="x", message="look <here>; do that", warns=True)
    text = attrs.evolve(run, verdict=Verdict((told,)))._repr_html_()
    found = Parsed(text)
    said = " ".join(found.text().split())
    assert said.startswith("1 warning: read before you use the draws. Warning: look <here>")
    assert f"{run.total_calls:,.0f} exact calls" in found.text("p")
    assert f"{run.summary()['mean'][3]:.4g}" in found.text("td")
    assert len(text) < 5000


def test_a_summary_is_shown_as_a_table_with_what_it_has(run):
    found = Parsed(run.summary(parameters=["w"], interval=0.9)._repr_html_())
    assert [text for tag, text in found.texts if tag == "bdi"] == ["w[0]", "w[1]"]
    assert "hdi_low" in found.text("th")
    assert "more numbers" not in found.text()


def test_weighted_answers_are_shown(weighted):
    assert "the answers are weighted" in weighted._repr_html_()


def test_hostile_names_are_text(hostile):
    for shown in (hostile, hostile.summary()):
        text = shown._repr_html_()
        assert "<script" not in text
        assert set(HOSTILE) == {text for tag, text in Parsed(text).texts if tag == "bdi"}


def test_of_many_numbers_the_first_are_shown():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=30)
    run = sk.sample(target, sampler="hmc", warmup=20, draws=20, seed=1, progress=False)
    for shown in (run, run.summary()):
        found = Parsed(shown._repr_html_())
        assert len(found.named("tr")) == 21
        assert "10 more numbers: print(run.summary()), or run.report('run.html')." in found.text(
            "p"
        )


def test_a_run_without_draws_is_shown(run):
    kept = attrs.evolve(run.kept, draws=run.kept.draws[:, :0], seconds=run.kept.seconds[:0])
    assert "There are no draws." in attrs.evolve(run, kept=kept)._repr_html_()
