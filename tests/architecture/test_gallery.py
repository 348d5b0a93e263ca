"""Every picture of the documentation stands in the gallery, beside the program that made it."""

from __future__ import annotations

import re

import pytest

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
