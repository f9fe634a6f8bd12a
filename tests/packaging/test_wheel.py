"""The wheel and the sdist: built, looked into, installed by pip, and run."""

import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from mtsd import __version__
from tests.packaging.building import build
from tests.packaging.dockerfile import copied
from tests.packaging.installing import Environment
from tests.packaging.locations import PROJECT, package_files
from tests.packaging.toolchain import toolchain


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("packaging") / "context")


@pytest.fixture(scope="module")
def wheel(context: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", context, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return sorted(archive.namelist())


def test_it_holds_the_package_alone(contents: list[str]) -> None:
    files = package_files()
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
    extras = project["optional-dependencies"]
    for extra, packages in extras.items():
        # The wheel names what another extra contains, not that extra.
        others = (extras[name] for name in extras if f"mtsd[{name}]" in packages)
        own = [package for package in packages if not package.startswith("mtsd[")]
        wanted = len(own) + sum(map(len, others))
        assert sum(f"extra == '{extra}'" in line for line in needs) == wanted
    always = [line for line in needs if "extra ==" not in line]
    assert len(always) == len(project["dependencies"])
    assert "mtsd = mtsd.__main__:main" in scripts.splitlines()


def test_pip_installs_a_command_that_runs(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(wheel)
    environment.check_that_it_runs(f"mtsd {__version__}")
    environment.uninstall()


def test_the_sdist_builds_the_same_wheel(contents: list[str], tmp_path: Path) -> None:
    for name in ("sdist", "source", "wheel"):
        (tmp_path / name).mkdir()
    sdist = build("sdist", PROJECT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        top = {name.split("/")[1] for name in archive.getnames()}
    assert top == {
        "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "config.example.toml", "mtsd",
        "hatch_build.py", "pyproject.toml", "systemd", ".gitignore",
    }  # fmt: skip
    subprocess.run(["tar", "-xf", sdist, "-C", tmp_path / "source"], check=True)
    (project,) = (tmp_path / "source").iterdir()
    assert {path.name for path in (project / "systemd").iterdir()} == {
        "mtsd.service", "mtsd@.service",
    }  # fmt: skip
    wheel = build("wheel", project, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(archive.namelist()) == contents


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_images_steps_by_hand(context: Path, tmp_path: Path) -> None:
    # The only test that needs a package index, as it takes nothing from the tests' environment.
    builder = Environment(tmp_path / "builder", locked=False)
    builder.pip("wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "wheels", context,
                environ={**toolchain(), "COMPILE_MTSD": "1"})  # fmt: skip
    (wheel,) = (tmp_path / "wheels").iterdir()
    image = Environment(tmp_path / "image", locked=False)
    image.pip("install", "--quiet", "--require-hashes", "-r", PROJECT / "requirements.lock")
    image.install(wheel)
    image.pip("check")
    image.check_that_it_runs(f"mtsd {__version__} (compiled)")


def test_the_changelog_has_room_for_what_comes() -> None:
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog
    licence = (PROJECT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence
    assert "APPENDIX: How to apply the Apache License" in licence
