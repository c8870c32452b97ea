"""Sphinx settings: `make docs` builds the pages in docs/_build."""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

import ihmm

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "ihmm"
author = "The ihmm developers"
copyright = "The ihmm developers"
version = release = ihmm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "run_blocks"]
exclude_patterns = ["_build", "_results", "_notebooks", "_extensions"]
nitpicky = False
default_role = "py:obj"  # names in docstrings are links where they can be, and code elsewhere
suppress_warnings = ["config.cache"]

html_theme = "furo"
html_title = f"ihmm {version}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings describe arguments and results
autodoc_class_signature = "separated"
autodoc_default_options = {"exclude-members": "__new__"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_use_param = False  # parameters that are described together stay together


def keep_underscores(app, what, name, obj, options, lines):
    """Attributes such as n_states_ would be taken for links, which lose their underscore, and the first of several
    attributes, before a space, for a type."""

    def named(match):
        return match[1] + re.sub(r"_(?=,|$)", r"\\_", match[2]).replace(", ", ",") + match[3]

    lines[:] = [re.sub(r"^(:ivar )([^:]*)(:)", named, line) for line in lines]


def polish_attributes(app, doctree):
    """Attributes under the name they have in docstrings, with a space after each comma."""
    for field in doctree.findall(nodes.field):
        if field[0].astext() == "Variables":
            field[0].replace_self(nodes.field_name("", "Attributes"))
            for name in field.findall(addnodes.literal_strong):
                name.replace_self(addnodes.literal_strong("", name.astext().replace(",", ", ")))


def setup(app):
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)  # after napoleon
    app.connect("doctree-read", polish_attributes)
