"""How the documentation is built: `make docs`, then open build/docs/index.html."""

import os
from importlib.util import find_spec
from pathlib import Path

import ratoon

os.environ.setdefault("MPLBACKEND", "Agg")
ROOT = Path(__file__).parent.parent

project = "ratoon"
author = "The ratoon developers"
copyright = author
version = release = ratoon.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
exclude_patterns = [
    "templates",
    "**.ipynb",
    "**/README.md",
    "auto_examples/*.py",
    "auto_examples/*.json",
]
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_mock_imports = [name for name in ("torch", "mpi4py") if find_spec(name) is None]
autodoc_default_options = {"members": True, "show-inheritance": False}
templates_path = ["templates"]
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True
default_role = "py:obj"

html_theme = "pydata_sphinx_theme"
html_title = "ratoon"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    # One folder per version next to each other; this file, next to them, lists the folders.
    "switcher": {
        "json_url": os.environ.get("RATOON_DOCS_VERSIONS", "../versions.json"),
        "version_match": version,
    },
    "check_switcher": False,
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
}

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_\d",
    # These need an extra, and are not part of the gallery.
    "ignore_pattern": r"torch_|optuna_|mlflow_|ray_",
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": (True, "jshtml"),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1,
    "capture_repr": (),
}

# Links out of docs/ lead to files of the repository, which a rendered page has no address for.
suppress_warnings = [
    "myst.xref_missing",
    "toc.not_included",
    "config.cache",
    # Short names of our own docstrings, and references in those inherited from scikit-learn.
    "ref.python",
    "ref.ref",
    "ref.term",
]

# The front page is a table of links, as it reads best in the repository; the menu comes from here.
CONTENTS = {
    "Use": [
        "user-guide",
        "command-line",
        "data",
        "small-samples",
        "many-samples",
        "survival",
        "wide-data",
        "selecting-features",
        "explaining",
        "report",
        "comparing",
        "coming-from",
        "auto_examples/index",
    ],
    "Research": [
        "evolution",
        "methods/index",
        "adding-a-strategy",
        "in-pytorch",
        "reproducing-the-paper",
        "how-a-step-works",
        "decisions",
    ],
    "Run": ["deploying", "operating", "on-a-cluster", "performance", "reliability", "versions"],
    "Reference": ["api", "file-format", "file-contents"],
}


def add_menu(app, name, source):
    """Append the menu to the front page; pages that are not there are left out."""
    if name != "index":
        return
    for caption, pages in CONTENTS.items():
        there = [page for page in pages if page in app.env.found_docs]
        listed = "\n".join(there)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def setup(app):
    """Connect the menu."""
    app.connect("source-read", add_menu)
