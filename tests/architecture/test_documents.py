"""The pages of the documentation: pictures stand beside their programs, links lead somewhere."""

from __future__ import annotations

import re
import runpy
import warnings

import numpy as np
import pytest

from surrokit.errors import SamplingWarning

PICTURE = re.compile(r"\]\(\.\./pictures/([\w-]+\.\w+)\)")
PROGRAM = re.compile(r"```\{literalinclude\} (\S+)")


@pytest.fixture(scope="module")
def pages(root):
    folder = root / "docs" / "gallery"
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.md"))}


@pytest.fixture(scope="module")
def programs(pages, root):
    """Page to the program that it shows."""
    shown = {name: PROGRAM.findall(text) for name, text in pages.items() if name != "index"}
    folder = root / "docs" / "gallery"
    return {name: (folder / path).resolve() for name, (path,) in shown.items()}


def test_every_picture_is_on_one_page(pages, root):
    made = {path.name for path in (root / "docs" / "pictures").iterdir() if path.suffix != ".py"}
    made = {name for name in made if "." in name and not name.startswith("__")}
    shown = [
        name for page, text in pages.items() if page != "index" for name in PICTURE.findall(text)
    ]
    assert sorted(shown) == sorted(made)


def test_a_picture_is_made_by_the_program_beside_it(pages, programs, root):
    for page, program in programs.items():
        assert program.is_file(), page
        assert program.relative_to(root).as_posix() in pages[page]
        if program.parent.name == "pictures":
            saved = re.findall(r'save\(.*"([\w-]+)"\)', program.read_text("utf-8"))
            assert [f"{name}.svg" for name in sorted(saved)] == sorted(PICTURE.findall(pages[page]))


def test_every_program_with_pictures_is_shown(programs, root):
    folder = root / "docs" / "pictures"
    drawing = {
        path
        for path in folder.glob("*.py")
        if re.search(r"^    save\(", path.read_text("utf-8"), re.M)
    }
    assert drawing <= set(programs.values())


def test_the_first_page_leads_to_every_other(pages):
    text = pages["index"]
    others = sorted(set(pages) - {"index"})
    assert sorted(re.findall(r"\]\(([\w-]+)\.md\)", text)) == others
    assert sorted(text.partition(":hidden:")[2].strip("`\n ").split()) == others


@pytest.fixture(scope="module")
def broken_links(root):
    return runpy.run_path(str(root / "docs" / "_ext" / "inner_links.py"))["broken_links"]


@pytest.fixture
def site(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "b.html").write_text('<p id="here">text</p><img src="../c%20d.png">')
    (tmp_path / "c d.png").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("room/b.html", True),
        ("room/b.html#here", True),
        ("#", True),
        ("https://elsewhere.example/#x", True),
        ("mailto:somebody@elsewhere.example", True),
        ("room/b.html#there", False),
        ("#there", False),
        ("room/a.html", False),
        ("room/", False),
    ],
)
def test_a_link_leads_to_a_file_and_its_anchor(broken_links, site, link, found):
    (site / "a.html").write_text(f'<a href="{link}">there</a>')
    assert broken_links(site) == ([] if found else [f"a.html: {link}"])


def test_pictures_are_looked_for(broken_links, site):
    (site / "c d.png").unlink()
    assert broken_links(site) == ["room/b.html: ../c%20d.png"]


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
