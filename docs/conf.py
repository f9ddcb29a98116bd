"""How Sphinx builds the documentation: this repository's pages and the reference."""

import tileops

project = "tileops"
release = tileops.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
# The source folder is the repository, because README.md links to other folders than this one.
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**"]
root_doc = "docs/index"
myst_heading_anchors = 3
numpydoc_show_class_members = False  # autodoc shows them

html_theme = "furo"
html_show_copyright = False
html_title = f"tileops {release}"
