"""Every experiment has its page in the documentation, and a place in its lists."""

from __future__ import annotations

import re

import pytest

from surrokit.registry.catalogue import default_catalogue

PAPER = ("table-1", *(f"figure-{i}" for i in range(1, 9)))


def test_table_and_figures_of_the_paper_are_experiments():
    assert set(default_catalogue().names("experiment")) >= set(PAPER)


@pytest.mark.parametrize("name", PAPER)
def test_the_page_shows_the_command_and_the_picture(root, name):
    page = (root / "docs" / "experiments" / f"{name}.md").read_text()
    assert re.search(rf"^\$ surrokit reproduce {name}\b", page, re.MULTILINE)
    assert f"../pictures/{name}.svg)" in page
    assert (root / "docs" / "pictures" / f"{name}.svg").is_file()


@pytest.mark.parametrize("name", PAPER)
def test_the_lists_name_it(root, name):
    front = (root / "docs" / "index.md").read_text()
    assert f"](pictures/{name}.svg)" in front
    assert f"](experiments/{name}.md)" in front
    listed = (root / "docs" / "experiments" / "index.md").read_text()
    assert re.search(rf"^\| \[{name}\]\({name}.md\) \|", listed, re.MULTILINE)
    assert re.search(rf"^{name}$", listed, re.MULTILINE)
