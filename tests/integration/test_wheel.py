"""The wheel, built, installed and run from another folder: the package has the product's name, its page lies inside."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import httpx
import pytest

from app import __version__
from tests.processes import ROOT, Process, free_ports


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; what it depends on comes from the environment that runs the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, cwd=folder, timeout=120)
    [wheel] = folder.glob("prefixscope-*.whl")
    home = folder / "venv"
    venv.create(home)
    python = home / "bin" / "python"
    install = [*pip, "--python", str(python), "install", "--no-deps", "--quiet", str(wheel)]
    subprocess.run(install, check=True, cwd=folder, timeout=120)
    [packages] = (home / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home / "bin" / "prefixscope"


def test_the_command_says_its_version(installed: Path, tmp_path: Path) -> None:
    said = subprocess.run([installed, "--version"], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert said.stdout.strip() == f"prefixscope {__version__}"


def test_the_demo_runs_from_another_folder_with_its_page(installed: Path, tmp_path: Path) -> None:
    [port] = free_ports(1)
    demo = Process([str(installed), "demo", "--port", str(port)], tmp_path / "log", folder=tmp_path)
    url = f"http://127.0.0.1:{port}"
    demo.start()
    try:
        demo.wait_for(f"{url}/readyz", 60)
        assert "PrefixScope" in httpx.get(url).text
        for path in ("static/js/main.js", "static/css/tokens.css", "static/vendor/plotly-cartesian.min.js"):
            assert httpx.get(f"{url}/{path}").status_code == 200, path
    finally:
        demo.stop()
