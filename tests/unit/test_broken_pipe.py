"""A reader of a command's output that leaves early, as `head` does, brings no traceback."""

import subprocess
import sys

from tests.processes import ROOT


def test_a_reader_that_left_ends_the_command_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "app", "lab", "--list"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None and process.stderr is not None
    # Closed before anything is written: the command's imports take longer than this.
    process.stdout.close()
    with process.stderr:
        said = process.stderr.read()
    assert (process.wait(60), said) == (141, b"")
