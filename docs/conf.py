"""Sphinx configuration of surrokit's documentation; build with ``sphinx-build -W docs OUT``."""

import logging
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

logging.getLogger("surrokit").setLevel(logging.WARNING)  # a theme lets all loggers print

project = "surrokit"
author = "The surrokit developers"
project_copyright = "the surrokit developers"
release = version = installed_version("surrokit")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.doctest",
    "generated_pages",
    "alt_texts",
    "inner_links",
]
exclude_patterns = ["_build", "examples", "pictures", "_ext"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "undoc-members": False}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

doctest_global_setup = f"""
import sys
sys.path.insert(0, {str(HERE / "_ext")!r})
from run_examples import commands_parse, run_example
"""
doctest_test_doctest_blocks = ""  # only what is marked as a test is one

html_theme = "furo"
html_title = f"surrokit {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sourcelink = False
