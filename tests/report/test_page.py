"""The page about a run: what is in it, in which order, and that it needs nothing else."""

from __future__ import annotations

import re

import attrs
import numpy as np
import pytest
from hostile_names import HOSTILE
from markupsafe import Markup
from parsed import Parsed

import surrokit as sk
from surrokit.errors import ConfigurationError, LedgerError, MissingDependencyError
from surrokit.plan.recipe import seed_of
from surrokit.report.page import SECTIONS, lines_of, page_of
from surrokit.result.records import Choice, Finding, Rescue, Verdict
from surrokit.shown.html import show

pytest.importorskip("matplotlib", reason="a page has Matplotlib's pictures")

LARGEST = 2_000_000
"""Bytes of a page."""


@pytest.fixture(scope="module")
def page(run, made):
    return made.setdefault("run", page_of(run))


@pytest.fixture(scope="module")
def parsed(page):
    return Parsed(page)


def pages(*names):
    return pytest.mark.parametrize("name", names)


@pytest.fixture(scope="module")
def made():
    return {}


@pytest.fixture
def page_about(request, made):
    """Return the page about a run, which is made once."""

    def about(name):
        if name not in made:
            made[name] = page_of(request.getfixturevalue(name))
        return made[name]

    return about


@pytest.fixture
def any_page(name, page_about):
    return page_about(name)


every_page = pages("run", "exact_run", "weighted", "hostile")


@every_page
def test_a_page_needs_nothing_else(any_page):
    found = Parsed(any_page)
    assert "http://" not in any_page
    assert "https://" not in any_page
    assert not found.attributes("src")
    assert all(each.startswith("#") for each in found.attributes("href"))
    assert not {"link", "iframe", "object", "img", "form"} & {tag for tag, _ in found.elements}
    assert "url(" not in re.sub(r"url\(#", "", any_page)
    assert len(any_page.encode()) < LARGEST


@every_page
def test_names_of_elements_are_unique_and_those_referred_to_exist(any_page):
    found = Parsed(any_page)
    names = found.attributes("id")
    assert len(set(names)) == len(names)
    wanted = {each.removeprefix("#") for each in found.attributes("href")}
    wanted |= set(re.findall(r"url\(#([^)]+)\)", any_page))
    for key in ("aria-labelledby", "aria-describedby", "for", "data-table"):
        wanted |= set(found.attributes(key))
    assert len(wanted) > 20
    assert wanted <= set(names)


@every_page
def test_each_picture_has_its_text(any_page):
    found = Parsed(any_page)
    pictures = found.named("svg")
    assert len(pictures) > 8
    assert all(each["role"] == "img" and each["aria-describedby"] for each in pictures)
    in_pictures = [
        tag for (tag, _), above in zip(found.elements, found.parents, strict=True) if "svg" in above
    ]
    assert in_pictures.count("title") == in_pictures.count("desc") == len(pictures)
    told = [text for tag, text in found.texts if tag in ("title", "desc")]
    assert all(text.strip() for text in told)


@every_page
def test_colours_of_pictures_are_those_of_the_page(any_page):
    pictures = re.findall(r"<svg.*?</svg>", any_page, flags=re.DOTALL)
    left = {colour for each in pictures for colour in re.findall("#[0-9a-fA-F]{6}", each)}
    assert left <= {"#ffffff"}
    assert all("font-family" not in each and "currentColor" in each for each in pictures)


def test_numbers_in_pictures_are_numbers(page):
    paths = re.findall(r' d="([^"]*)"', page)
    assert len(paths) > 100
    words = {word for path in paths for word in path.split()}
    assert not [w for w in words if not re.fullmatch(r"[MLCQZz]|-?\d+(\.\d+)?(e-?\d+)?", w)]


def test_sections_come_in_order(parsed):
    ids = [each["id"] for each in parsed.named("section")]
    assert ids == list(SECTIONS) == ["verdict", "posterior", "trust", "cost", "recipe"]
    assert [each["href"] for each in parsed.named("a")][1:] == [f"#{name}" for name in SECTIONS]


def test_a_page_says_what_language_it_is_and_fits_telephones(parsed):
    assert parsed.named("html") == [{"lang": "en"}]
    assert any(each.get("name") == "viewport" for each in parsed.named("meta"))
    assert parsed.text("title").startswith("Report of a run")


def test_a_browser_runs_the_page_s_own_script_alone(page, parsed):
    import base64
    import hashlib

    (script,) = re.findall("<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [each["content"] for each in parsed.named("meta") if "http-equiv" in each]
    assert f"script-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")


# --- what it says ---


def test_the_verdict_comes_first_with_advice(run):
    told = Finding(name="x", message="this is <bad>; do that", warns=True)
    text = page_of(attrs.evolve(run, verdict=Verdict((told,))))
    assert "1 warning: read before you use the draws." in text
    assert "this is &lt;bad&gt;; do that." in text
    assert text.index("read before you use") < text.index('id="posterior"')


def test_nothing_is_said_against_sound_draws_and_intervals_are_those_asked_for(run):
    text = page_of(attrs.evolve(run, verdict=Verdict()), interval=0.955)
    assert "Nothing speaks against these draws." in text
    assert "ends of 95.5% highest-density intervals" in text
    assert f"{run.highest_density(0.955)[0, 0]:.4g}" in text


def test_the_table_has_each_number_with_its_figures(run, parsed):
    summary = run.summary(interval=0.9)
    cells = [text for tag, text in parsed.texts if tag in ("bdi", "td", "span")]
    for label, row in summary.rows():
        assert label in cells
        for name in ("mean", "sd", "hdi_low", "hdi_high"):
            assert f"{row[name]:.4g}" in cells
        assert any(cell.endswith(f"{row['rhat']:.3f}") for cell in cells)


@pages("hostile")
def test_doubtful_figures_are_marked_by_more_than_colour(any_page, hostile):
    found = Parsed(any_page)
    marked = [each for each in found.named("span") if each.get("class") == "doubtful"]
    assert marked
    assert f"{hostile.rhat()[0]:.3f} !" in found.text("span")


def test_a_reader_s_own_style_does_not_change_a_page(run, page):
    import matplotlib.style

    with matplotlib.style.context(["dark_background", {"savefig.dpi": 300, "font.size": 20}]):
        styled = page_of(run)
    assert re.sub("Made by.*", "", styled) == re.sub("Made by.*", "", page)


def test_trust_has_what_the_run_has(page_about):
    assert "surrogate's error" in Parsed(page_about("run")).text("title")
    assert "there was no surrogate" in page_about("exact_run")
    text = page_about("weighted")
    assert "Weights of the" in text
    assert "Pictures are of weighted answers, resampled by their weights." in text
    assert "surrogate's error by round" in Parsed(text).text("title")


def test_costs_and_repairs_are_told(run):
    rescues = tuple(Rescue(iteration=i, reason=f"it <failed> {i}") for i in range(1, 16))
    other = attrs.evolve(run, adaptation=attrs.evolve(run.adaptation, rescues=rescues))
    found = Parsed(page_of(other))
    assert f"{run.calls['gradient']:,} gradient" in found.text("dd")
    assert "after iteration 12: it <failed> 12" in found.text("li")
    assert "and 3 more" in found.text("li")


def test_vectors_have_forests(page):
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, parameters={"w": sk.vector(5)})
    five = sk.sample(target, sampler="hmc", warmup=60, draws=40, seed=1, progress=False)
    assert "5 numbers of w" in Parsed(page_of(five)).text("desc")
    assert "Parameters with several numbers" not in page


def test_without_draws_a_page_says_so(run):
    nothing = sk.sample(
        sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=2),
        sampler="hmc",
        warmup=5,
        draws=5,
        seed=1,
        max_calls=2,
        progress=False,
    )
    assert nothing.draws.shape[1] == 0
    text = page_of(nothing)
    assert "There are no draws." in text
    assert "exact calls" in text


def test_one_number_and_few_draws_make_a_page():
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, dim=1)
    for draws in (1, 3):
        page_of(sk.sample(target, chains=1, warmup=20, draws=draws, seed=1, progress=False))


# --- names ---


@pages("hostile")
def test_hostile_names_are_text(any_page):
    found = Parsed(any_page)
    assert any_page.count("<script") == 1
    assert "alert(1)" not in found.text("script")
    shown = [text for tag, text in found.texts if tag == "bdi"]
    assert set(HOSTILE) <= set(shown)


def test_text_is_escaped_and_control_characters_and_turned_writing_are_shown():
    text = show("x", facts=[("<b>", "\u202ea\x00"), ('"', Markup("<i>{}</i>").format("&"))])
    assert "<dt>&lt;b&gt;</dt><dd>\\u202ea\\x00</dd>" in text
    assert "<dt>&#34;</dt><dd><i>&amp;</i></dd>" in text
    names = {"a\x01b\u202e": None, "c": None}
    target = sk.potential(lambda q: 0.5 * q @ q, lambda q: q, parameters=names)
    run = sk.sample(target, sampler="hmc", warmup=20, draws=20, seed=1, progress=False)
    page = page_of(run)
    page.encode()
    assert not {"\x01", "\u202e"} & set(page)
    assert {"a\\x01b\\u202e"} <= {text for tag, text in Parsed(page).texts if tag == "bdi"}


# --- how it is made again ---


def test_the_lines_of_a_run_with_a_file_make_it_again(tmp_path, target):
    path = tmp_path / "run.surrokit"
    sizes = {"chains": 2, "warmup": 30, "draws": 20, "seed": 7, "progress": False}
    sampler, safety = ("hmc", {"target_acceptance": 0.7}), sk.Safety(patience=30)
    run = sk.sample(target, sampler=sampler, path=path, schedule=safety, **sizes)
    for each in (run, sk.open_run(path)):
        lines = lines_of(each)
        assert "seed=7," in lines
        assert "schedule=sk.Safety(patience=30)," in lines
        scope = {"target": target}
        exec(lines.replace("target,\n", "target, progress=False,\n"), scope)
        np.testing.assert_array_equal(scope["run"].draws, run.draws)


def test_a_file_tells_the_name_of_a_target(tmp_path):
    path, target = tmp_path / "run.surrokit", ("gaussian", {"mean": [1.0, 2.0]})
    sk.sample(target, sampler="hmc", warmup=30, draws=20, seed=7, path=path, progress=False)
    lines = lines_of(sk.open_run(path))
    assert "    ('gaussian', {'mean': [1.0, 2.0]})," in lines
    assert "yours" not in lines


def test_lines_go_by_the_last_session(tmp_path, target):
    path = tmp_path / "run.surrokit"
    sk.sample(target, sampler="hmc", warmup=30, draws=20, seed=7, path=path, progress=False)
    run = sk.resume(path, target, draws=30, progress=False)
    assert "    draws=30," in lines_of(run)


def test_objects_and_used_generators_are_told_as_such(tmp_path, target):
    rng = np.random.default_rng(1)
    rng.normal()
    path = tmp_path / "run.surrokit"
    start = np.zeros(4)
    sizes = {"warmup": 30, "draws": 20, "progress": False}
    sk.sample(target, sampler="hmc", seed=rng, initial=start, path=path, **sizes)
    lines = lines_of(sk.open_run(path))
    assert "    seed=...," in lines
    assert "    initial=...," in lines
    assert "# ... was an object of yours" in lines


SHORT = {"chains": 2, "warmup": 30, "draws": 20, "progress": False}


@pytest.mark.filterwarnings("ignore::surrokit.errors.SamplingWarning")  # few draws
@pytest.mark.parametrize("seed", [None, 7, np.int64(7), [1, 2], np.random.default_rng])
@pytest.mark.parametrize("target", ["gaussian", ("gaussian", {"mean": [1.0, 2.0]})])
def test_the_lines_of_any_run_make_it_again(target, seed):
    seed = seed() if callable(seed) else seed
    sampler = ("hmc", {"target_acceptance": 0.7, "step_size": 0.1})
    run = sk.sample(target, sampler=sampler, seed=seed, **SHORT)
    scope = {}
    exec(lines_of(run).replace("chains=", "progress=False,\n    chains="), scope)
    np.testing.assert_array_equal(scope["run"].draws, run.draws)


def test_lines_of_a_run_tell_all_that_was_asked_for(run):
    assert lines_of(run).splitlines() == [
        "import surrokit as sk",
        "",
        "# the target is yours: no run holds it",
        "run = sk.sample(",
        "    target,",
        "    sampler='hmc',",
        "    surrogate='additive',",
        "    warmup=200,",
        "    draws=400,",
        "    chains=4,",
        "    seed=3,",
        ")",
    ]


CHOSEN = Choice(parts={"sampler": "'hmc'"}, reasons=("it is cheap",))


def test_lines_tell_where_parts_were_picked_by_cost(run):
    picked = {name: value for name, value in run.asked.items() if name != "surrogate"}
    told = lines_of(attrs.evolve(run, chosen=CHOSEN, asked={"chains": 4, "seed": 1}))
    assert "# parts were picked by what calls cost" in told
    assert "picked" not in lines_of(attrs.evolve(run, chosen=CHOSEN, asked=picked))
    assert "is not known" in lines_of(attrs.evolve(run, asked=None))


@pytest.mark.parametrize("used", [lambda rng: rng.normal(), lambda rng: rng.spawn(1)])
def test_no_seed_is_told_of_a_generator_that_was_used(used):
    rng = np.random.default_rng(1)
    assert seed_of(rng) == 1
    used(rng)
    assert seed_of(rng) is ...
    assert seed_of(np.random.Generator(np.random.MT19937(1))) is ...


def test_arrays_among_the_settings_are_told_as_lists(run):
    asked = {"sampler": ("x", {"at": np.zeros(1000), "step_size": np.array([0.1, 0.2])})}
    lines = lines_of(attrs.evolve(run, asked=asked))
    assert "    sampler=('x', {'at': ..., 'step_size': [0.1, 0.2]})," in lines


# --- files ---


def test_a_report_is_written(run, tmp_path):
    path = run.report(tmp_path / "run.html")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("name", ["run.pdf", "run", "run.nc"])
def test_another_ending_is_refused(run, tmp_path, name):
    with pytest.raises(ConfigurationError, match=r"does not end in \.html; call it run\.html"):
        run.report(tmp_path / name)


def test_a_folder_that_is_not_there_is_told(run, tmp_path):
    with pytest.raises(ConfigurationError, match="there is no folder"):
        run.report(tmp_path / "none" / "run.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ConfigurationError, match=r"cannot write .*; give a file in a folder"):
        run.report(tmp_path / "folder.html")


def test_without_matplotlib_the_message_says_what_to_install(run, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"surrokit\[figures\]"):
        run.report(tmp_path / "run.html")


# --- the command line ---


@pytest.fixture
def command(capsys, monkeypatch):
    from surrokit.cli.main import cli

    def call(*words):
        cli([*map(str, words)], standalone_mode=False)
        return capsys.readouterr().out

    return call


def test_sample_writes_a_report(command, tmp_path):
    page = tmp_path / "run.html"
    sizes = ["--warmup", "60", "--draws", "40", "--seed", "1"]
    out = command("sample", "gaussian", "--sampler", "hmc", *sizes, "--report", page)
    assert f"report written to {page}" in out
    assert "Nothing speaks" in page.read_text() or "warning" in page.read_text()


def test_a_report_that_cannot_be_written_is_told_before_the_run(command, tmp_path):
    with pytest.raises(ConfigurationError, match=r"does not end in \.html"):
        command("sample", "gaussian", "--report", tmp_path / "run.txt")


def test_report_makes_a_page_of_a_file(command, weighted, tmp_path):
    file = tmp_path / "weighted.surrokit"
    assert weighted.more is not None
    file.write_bytes(weighted.more.args[0].read_bytes())
    out = command("report", file)
    page = file.with_suffix(".html")
    assert f"report written to {page}" in out
    assert "resampled by their weights" in page.read_text()


def test_report_of_a_missing_file_is_told(command, tmp_path):
    with pytest.raises(LedgerError, match="nothing"):
        command("report", tmp_path / "nothing.surrokit")


# --- many numbers ---


@pytest.mark.long
def test_hundreds_of_numbers_make_a_page():
    names = {f"p{i}": None for i in range(440)} | {"w": sk.vector(60)}
    target = sk.potential(value_and_gradient=lambda q: (0.5 * q @ q, q), parameters=names)
    run = sk.sample(target, sampler="hmc", warmup=50, draws=50, seed=1, progress=False)
    text = page_of(run)
    assert len(text.encode()) < LARGEST
    found = Parsed(text)
    assert len(found.named("tr")) == 501
    assert len(found.named("svg")) < 45
    assert "Of 500 numbers, the first 6 and the 6 others" in text
    assert any(each.get("type") == "search" for each in found.named("input"))
