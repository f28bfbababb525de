"""Hypothesis draws anew at each run on a developer's machine; under CI it draws the same, so that a run repeats."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
