"""The wheel and the sdist: built, looked into, installed by pip, and run."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from mtsd import __version__
from tests.packaging.dockerfile import stages
from tests.packaging.locations import PROJECT


def ran(*command: object, cwd: Path, environ: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environ, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(kind: str, project: Path, into: Path) -> Path:
    """Build the wheel or sdist of a folder with the locked backend, and so without the network."""
    ran(sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", into,
        cwd=project)  # fmt: skip
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it of what the Dockerfile's first stage has, which so proves to be enough."""
    context = tmp_path_factory.mktemp("context")
    for name in stages()[0].copied:
        if (PROJECT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / name, context / name, ignore=unwanted)
        else:
            shutil.copy2(PROJECT / name, context / name)
    return built("wheel", context, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def test_it_holds_the_package_alone(contents: list[str]) -> None:
    files = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "mtsd").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert "mtsd/py.typed" in files
    information = f"mtsd-{__version__}.dist-info"
    assert {name for name in contents if not name.startswith(information)} == files
    assert f"{information}/licenses/LICENSE" in contents
    folders = {path.parent for path in (PROJECT / "mtsd").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_its_metadata_are_the_projects(wheel: Path) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__
    with zipfile.ZipFile(wheel) as archive:
        folder = f"mtsd-{__version__}.dist-info"
        metadata = archive.read(f"{folder}/METADATA").decode()
        scripts = archive.read(f"{folder}/entry_points.txt").decode()
    lines = metadata.splitlines()
    assert f"Version: {__version__}" in lines
    assert "Requires-Python: >=3.11" in lines
    needs = [line for line in lines if line.startswith("Requires-Dist: ")]
    assert len(needs) == len(project["dependencies"])
    assert "mtsd = mtsd.cli.main:main" in scripts.splitlines()


def test_pip_installs_a_command_that_runs(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python)
    ran(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=tmp_path)
    # What it needs is there already, in the versions of the lock.
    (packages,) = environment.glob("lib/python3.*/site-packages")
    (packages / "locked.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    check_that_it_runs(environment, tmp_path)
    ran(*pip, "uninstall", "--quiet", "--yes", "mtsd", cwd=tmp_path)
    assert not (environment / "bin" / "mtsd").exists()
    assert not (packages / "mtsd").exists()


def check_that_it_runs(environment: Path, folder: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    command = environment / "bin" / "mtsd"
    assert ran(command, "--version", cwd=folder, environ=environ) == f"mtsd {__version__}\n"
    assert "example:" in ran(command, "run", "--help", cwd=folder, environ=environ)
    python = environment / "bin" / "python"
    where = ran(python, "-c", "import mtsd; print(mtsd.__file__)", cwd=folder, environ=environ)
    assert where.startswith(str(environment))
    (folder / "config.toml").write_text("[source]\nserver_id = 7\n")
    shown = ran(command, "config", "show", "--config", "config.toml", cwd=folder, environ=environ)
    assert "source.server_id" in shown


def test_the_sdist_builds_the_same_wheel(contents: list[str], tmp_path: Path) -> None:
    for name in ("sdist", "source", "wheel"):
        (tmp_path / name).mkdir()
    sdist = built("sdist", PROJECT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames()}
    assert top == {
        "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "config.example.toml", "mtsd",
        "pyproject.toml", "systemd", ".gitignore",
    }  # fmt: skip
    ran("tar", "-xf", sdist, "-C", tmp_path / "source", cwd=tmp_path)
    (project,) = (tmp_path / "source").iterdir()
    assert {path.name for path in (project / "systemd").iterdir()} == {
        "mtsd.service", "mtsd@.service",
    }  # fmt: skip
    wheel = built("wheel", project, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(archive.namelist()) == contents


@pytest.mark.long
def test_the_images_steps_by_hand(wheel: Path, tmp_path: Path) -> None:
    # The only test that needs a package index, as it takes nothing from the tests' environment.
    environment = tmp_path / "venv"
    venv.create(environment)
    pip = (sys.executable, "-m", "pip", "--python", environment / "bin" / "python")
    lock = PROJECT / "requirements.lock"
    ran(*pip, "install", "--quiet", "--require-hashes", "-r", lock, cwd=tmp_path)
    ran(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    ran(*pip, "check", cwd=tmp_path)
    check_that_it_runs(environment, tmp_path)


def test_the_changelog_has_room_for_what_comes() -> None:
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog
    licence = (PROJECT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence
    assert "APPENDIX: How to apply the Apache License" in licence
