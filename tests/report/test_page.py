"""The page about a run: what is in it, in which order, and that it needs nothing else."""

from __future__ import annotations

import re
import sys
import time

import attrs
import numpy as np
import pytest
from pages import HOSTILE_SHOWN, Parsed

import surrokit as sk
from surrokit.cli.main import cli
from surrokit.errors import ConfigurationError, LedgerError, MissingDependencyError
from surrokit.report.page import SECTIONS, page_of
from surrokit.result.records import Finding, Repair, Verdict

pytest.importorskip("matplotlib", reason="a page has Matplotlib's pictures")
pytestmark = pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")  # few draws

LARGEST = 2_000_000
"""Bytes of a page."""

FEW = {"chains": 2, "warmup": 30, "draws": 20, "progress": False}


@pytest.fixture
def command(capsys):
    def call(*words):
        cli([*map(str, words)], standalone_mode=False)
        return capsys.readouterr().out

    return call


@pytest.fixture(scope="module")
def page(run):
    """The page about a run with a finding and repairs."""
    told = Finding(name="x", message="this is <bad>; do that", warns=True)
    repairs = tuple(Repair(iteration=i, reason=f"it <failed> {i}") for i in range(1, 16))
    adaptation = attrs.evolve(run.adaptation, repairs=repairs)
    other = attrs.evolve(run, verdict=Verdict((told,)), adaptation=adaptation)
    return page_of(other, interval=0.955)


@pytest.fixture(scope="module")
def every_page(page, weighted, hostile, tmp_path_factory):
    """Pages by name; that of the weighted answers is made of their file by the command."""
    file = tmp_path_factory.mktemp("pages") / "weighted.surrokit"
    file.write_bytes(weighted.more.args[0].read_bytes())
    cli(["report", str(file)], standalone_mode=False)
    of_file = file.with_suffix(".html").read_text(encoding="utf-8")
    return {"run": page, "weighted": of_file, "hostile": page_of(hostile)}


@pytest.fixture(params=["run", "weighted", "hostile"])
def any_page(request, every_page):
    return every_page[request.param]


def test_a_page_needs_nothing_else(any_page):
    found = Parsed(any_page)
    assert any_page.startswith("<!DOCTYPE html>")
    assert "http://" not in any_page
    assert "https://" not in any_page
    assert all(each.startswith("#") for each in found.attributes("href"))
    assert not {"link", "iframe", "object", "form"} & {tag for tag, _ in found.elements}
    assert "url(" not in re.sub(r"url\(#", "", any_page)
    assert len(any_page.encode()) < LARGEST


def test_names_of_elements_are_unique_and_those_referred_to_exist(any_page):
    found = Parsed(any_page)
    names = found.attributes("id")
    assert len(set(names)) == len(names)
    wanted = {each.removeprefix("#") for each in found.attributes("href")}
    wanted |= set(found.attributes("aria-labelledby"))
    assert len(wanted) >= 5
    assert wanted <= set(names)


def test_each_picture_has_its_text(any_page):
    pictures = Parsed(any_page).named("img")
    assert len(pictures) >= 2
    assert all(each["alt"].strip() for each in pictures)
    assert all(each["src"].startswith("data:image/png;base64,iVBOR") for each in pictures)


def test_sections_come_in_order_and_a_browser_runs_no_script(page):
    found = Parsed(page)
    ids = [each["id"] for each in found.named("section")]
    assert ids == list(SECTIONS) == ["verdict", "posterior", "surrogate", "cost", "recipe"]
    assert [each["href"] for each in found.named("a")] == [f"#{name}" for name in SECTIONS]
    assert found.named("html") == [{"lang": "en"}]
    assert any(each.get("name") == "viewport" for each in found.named("meta"))
    assert found.text("title").startswith("Report of a run")
    (policy,) = [each["content"] for each in found.named("meta") if "http-equiv" in each]
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy
    assert not found.named("script")


# --- what it says ---


def test_the_verdict_comes_first_with_advice(page, run):
    assert "1 warning: read before you use the draws." in page
    assert "this is &lt;bad&gt;; do that." in page
    assert page.index("read before you use") < page.index('id="posterior"')
    sound = attrs.evolve(run, verdict=Verdict())
    assert "Nothing speaks against these draws." in page_of(sound)


def test_doubtful_figures_are_marked_by_more_than_colour(every_page, hostile):
    found = Parsed(every_page["hostile"])
    assert any(each.get("class") == "doubtful" for each in found.named("span"))
    assert f"{hostile.rhat().max():.3f} !" in found.text("span")
    assert f"{hostile.ess().min():.0f} !" in found.text("span")


def test_what_is_said_of_the_surrogate_is_what_the_run_has(every_page):
    said = {name: " ".join(Parsed(page).attributes("alt")) for name, page in every_page.items()}
    assert "Exact potential less surrogate at" in said["run"]
    assert "there was no surrogate" in every_page["hostile"]
    assert "less surrogate" not in said["hostile"] + said["weighted"]
    assert "weighted answers, by their weights" in every_page["weighted"]


def test_figures_costs_and_repairs_are_told(run, page):
    cells = [text for tag, text in Parsed(page).texts if tag in ("bdi", "td", "span")]
    label, row = next(run.summary(interval=0.955).rows())
    for figure in (label, f"{row['hdi_low']:.4g}", f"{row['hdi_high']:.4g}"):
        assert figure in cells
    assert "ends of 95.5% highest-density intervals" in page
    found = Parsed(page)
    assert f"{run.calls['gradient']} gradient" in found.text("dd")
    assert "after iteration 12: it <failed> 12" in found.text("li")
    assert "and 3 more" in found.text("li")


def test_few_draws_make_a_page(run):
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, parameters={"w": sk.real(3)})
    few = sk.sample(target, **{**FEW, "chains": 1, "draws": 3}, seed=1)
    assert "1 chains of 3 draws of 3 numbers" in page_of(few)
    none = attrs.evolve(run, kept=run.warmup.chosen(np.zeros(0, dtype=int)))
    text = page_of(attrs.evolve(none, warmup=none.kept))
    assert "There are no draws." in text
    assert "exact calls" in text


def test_hostile_names_are_text(every_page):
    text = every_page["hostile"]
    found = Parsed(text)
    text.encode()
    assert not {"\x01", "\u202e"} & set(text)
    assert "<script" not in text
    assert {text for tag, text in found.texts if tag == "bdi"} >= HOSTILE_SHOWN


@pytest.mark.long
def test_hundreds_of_numbers_make_a_page():
    names = {f"p{i}": None for i in range(440)} | {"w": sk.real(60)}
    target = sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), parameters=names)
    text = page_of(sk.sample(target, sampler="hmc", **FEW, seed=1))
    assert len(text.encode()) < LARGEST
    found = Parsed(text)
    assert len(found.named("tr")) == 501
    assert len(found.named("img")) == 2


def test_a_page_says_what_was_asked_for(run, page):
    found = dict(zip(*(Parsed(page).texts_in(tag) for tag in ("dt", "dd")), strict=True))
    assert {name: found[name] for name in run.asked} == {
        "sampler": "hmc",
        "surrogate": "additive",
        "chains": "4",
        "warmup": "200",
        "draws": "400",
        "seed": "3",
    }


# --- files and commands ---


def test_a_page_that_cannot_be_written_is_told(run, tmp_path, monkeypatch, command):
    for name in ("run.pdf", "run", "run.nc"):
        with pytest.raises(ConfigurationError, match=r"not end in \.html; call it run\.html"):
            run.report(tmp_path / name)
    with pytest.raises(ConfigurationError, match=r"does not end in \.html"):
        command("sample", "gaussian", "--report", tmp_path / "run.txt")  # before the run
    with pytest.raises(ConfigurationError, match="there is no folder"):
        run.report(tmp_path / "none" / "run.html")
    with pytest.raises(LedgerError, match="nothing"):
        command("report", tmp_path / "nothing.surrokit")
    (tmp_path / "folder.html").mkdir()
    monkeypatch.setattr("surrokit.report.page.page_of", lambda *_, **__: "a page")
    page = tmp_path / "run.html"
    sizes = ["--warmup", "60", "--draws", "40", "--seed", "1"]
    out = command("sample", "gaussian", "--sampler", "hmc", *sizes, "--report", page)
    assert f"report written to {page}" in out
    assert page.read_text() == "a page"
    with pytest.raises(ConfigurationError, match=r"cannot write .*; give a file in a folder"):
        run.report(tmp_path / "folder.html")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"surrokit\[figures\]"):
        run.report(tmp_path / "run.html")


# --- a run that goes on ---


def test_a_page_about_a_run_that_goes_on_says_so(tmp_path, command):
    """The model itself makes the page about the run that calls it."""
    path, count, pages = tmp_path / "run.surrokit", 0, []

    def model(q):
        nonlocal count
        count += 1
        if count == 300:
            time.sleep(0.6)  # the file is written about twice a second
        elif count == 302:
            command("report", path)
            pages.append(path.with_suffix(".html").read_text())
        return 0.5 * q @ q, q

    settings = {"sampler": "hmc", "warmup": 30, "draws": 30, "seed": 1, "progress": False}
    plain = sk.sample(
        sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), dim=2), **settings
    )
    run = sk.sample(sk.potential(value_and_gradient=model, dim=2), path=path, **settings)
    np.testing.assert_array_equal(run.draws, plain.draws)
    assert "The run goes on, or was killed: " in pages[0]
    assert "interrupted" not in pages[0]
    command("report", path)
    assert "The run goes on" not in path.with_suffix(".html").read_text()
