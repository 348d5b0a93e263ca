"""Every setting of every built-in part says what it is, and what it may be."""

from __future__ import annotations

import re

import pytest

from surrokit.cli.parts import part_rows
from surrokit.registry.catalogue import default_catalogue

BUILT_IN = [entry for entry in default_catalogue() if entry.plugin.startswith("surrokit[")]
BARE = re.compile(r"(int|float)( \| None)?")
RANGE = re.compile(r"[Pp]ositive|[Aa]t least|at most|above|\d to \d|None")


@pytest.fixture(scope="module")
def settings():
    """Name of each setting to its row."""
    rows = part_rows(BUILT_IN)
    return {
        f"{row['kind']} {row['name']}.{name}": setting
        for row in rows
        for name, setting in row["settings"].items()
    }


def test_each_setting_has_a_sentence(settings):
    assert len(settings) > 250
    silent = [name for name, each in settings.items() if not each["help"].strip()]
    assert silent == []


def test_each_setting_says_what_it_takes(settings):
    assert [name for name, each in settings.items() if not each["takes"]] == []


def test_a_bare_number_has_its_range_in_words(settings):
    vague = [
        name
        for name, each in settings.items()
        if BARE.fullmatch(each["takes"]) and not RANGE.search(each["help"])
    ]
    assert vague == []
