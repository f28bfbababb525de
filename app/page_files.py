"""Where the page's files lie: inside the package where a wheel is installed, beside it in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).parent
_ROOT = _PACKAGE if (_PACKAGE / "static").is_dir() else _PACKAGE.parent
STATIC_DIR = _ROOT / "static"
TEMPLATES_DIR = _ROOT / "templates"
PLOTLY = "vendor/plotly-cartesian.min.js"
"""Plotly's own bundle of the chart types that are drawn, in STATIC_DIR: a third of the whole."""
