"""Pages and strings have the words of Stan's manual, ArviZ and the paper, and no private ones."""

from __future__ import annotations

import ast
import re

import pytest
from trees import walked

PRIVATE = {
    r"pa(?:id|ys?|ying)|payments?": "evaluate, evaluation",
    r"dear(?:er|est)?|bills?|allowances?": "expensive, budget",
    r"(?:dis)?belie(?:ves?|ved|f)": "accept",
    r"honest\w*": "unbiased, or: diagnostics pass",
    r"refus\w+": "reject",
    r"told|tells": "report, warn",
    r"fore(?:t(?:ell|ells|old|elling)|sight)|prospects?": "predict",
    r"hindsight|tilt\w*|evens": "predictive variance, density ratio, proposal density",
    r"necks?": "funnel",
    r"strays?|begun again": "stuck chain, restarted",
    r"standby|stands? by|safety net|lessons?|rescues?": "fallback, repair",
    r"errands?|cargo|crews?|hire[ds]?|desks?": "task, payload, worker pool, start, request handler",
    r"outskirts|sequels?|in vain": "tails, extension, unused",
    r"hand(?:s|ed)? over|takes? over|took over|looks? back": "export, resume from",
    r"settle[sd]?": "fix",
    r"sa(?:ys?|id) (?:nothing|so)": "what it reports",
    r"(?:may|can|could) be had|(?<!each )of which|whoever": "a plain sentence",
    r"(?:does not|do not|cannot|never) see": "what a program does: has no, cannot detect",
}
"""Pattern of private words to the words of the field that take their place."""

ANY = re.compile(rf"\b(?:{'|'.join(PRIVATE)})\b", re.IGNORECASE)
CODE = re.compile(r"^(`{3,}).*?^\1`*$|``.+?``|`[^`\n]*(?:\n[^`\n]+)?`", re.DOTALL | re.MULTILINE)


def spaced(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


def private_words(text):
    return ANY.findall(CODE.sub("", text))


@pytest.fixture(scope="module")
def pages(root):
    found = [*(root / "docs").rglob("*.md"), *root.glob("*.md")]
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in found}


def test_pages_have_no_private_words(pages):
    assert {name: words for name, text in pages.items() if (words := private_words(text))} == {}


def test_names_have_no_private_words(source_trees):
    found = {
        (name, each): words
        for name, tree in source_trees.items()
        for node in walked(tree)
        for each in (getattr(node, field, None) for field in ("name", "id", "attr", "arg"))
        if isinstance(each, str) and (words := ANY.findall(spaced(each)))
    }
    assert found == {}


def test_strings_have_no_private_words(source_trees):
    found = {
        (name, node.lineno): words
        for name, tree in source_trees.items()
        for node in walked(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        if (words := private_words(node.value))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What was paid for is Believed; the verdict says so.", ["paid", "Believed", "says so"]),
        ("`run.modes.believed`, ``paid`` and a paidment", []),
        ("```python\nprint('told')\n```\nThe run warns.", []),
    ],
)
def test_words_are_found_outside_of_code(text, words):
    assert private_words(text) == words
