"""How Sphinx builds the documentation: this repository's pages and the reference."""

import tileops

project = "tileops"
author = "the tileops authors"
release = tileops.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
include_patterns = ["*.md", "docs/**"]  # of the repository: README.md links to other folders
root_doc = "docs/index"
myst_heading_anchors = 2
numpydoc_show_class_members = False  # autodoc shows them

html_theme = "furo"
html_title = f"tileops {release}"
