"""Sphinx settings: `make docs` builds the pages in docs/_build."""

import ihmm

project = "ihmm"
author = "The ihmm developers"
copyright = "The ihmm developers"
version = release = ihmm.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]
nitpicky = False
suppress_warnings = ["config.cache"]

html_theme = "furo"
html_title = f"ihmm {version}"
html_show_sourcelink = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings describe arguments and results
autodoc_class_signature = "separated"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
