"""The documentation's build finds links that lead nowhere."""

from __future__ import annotations

import runpy

import pytest


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
