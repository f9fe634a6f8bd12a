"""The Dockerfile, as far as it can be checked without an engine."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.packaging.dockerfile import Stage, stages
from tests.packaging.locations import PROJECT


@pytest.fixture(scope="module")
def build() -> Stage:
    return stages()[0]


@pytest.fixture(scope="module")
def image() -> Stage:
    return stages()[-1]


def test_hadolint_has_nothing_against_it() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if hadolint is None:
        pytest.skip("no hadolint for this machine; the other tests read the Dockerfile themselves")
    done = subprocess.run(
        [hadolint, "--no-color", str(PROJECT / "Dockerfile")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_what_is_copied_exists_and_is_sent_to_the_engine(build: Stage, image: Stage) -> None:
    ignored, *kept = (PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored == "*"
    for stage in (build, image):
        assert stage.copied
        for name in stage.copied:
            assert (PROJECT / name).exists(), name
            assert f"!{name}" in kept, name
    # And nothing is sent that no step uses.
    sent = {line.removeprefix("!") for line in kept if line.startswith("!")}
    assert sent == {*build.copied, *image.copied}


def test_python_is_one_that_the_package_takes(build: Stage, image: Stage) -> None:
    # The same Python, and so the same libc; one with a C compiler, one without.
    assert image.image == f"{build.image}-slim"
    name, _, tag = image.image.partition(":")
    assert name == "python"
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tag.removesuffix("-slim")
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]


def test_what_builds_the_wheel_is_locked_at_the_versions_of_the_tests(build: Stage) -> None:
    install, wheel = build.values("RUN")
    assert "--require-hashes -r requirements-build.lock" in install
    assert wheel.startswith("COMPILE_MTSD=1 pip wheel")
    # Else pip fetches what pyproject.toml and hatch_build.py name once more, unlocked.
    assert "--no-build-isolation" in wheel
    of_build, of_tests = (
        set(re.findall(r"^\S+==\S+", (PROJECT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements-build.lock", "requirements-dev.lock")
    )
    assert of_build <= of_tests
    assert {"hatchling", "mypy", "setuptools"} <= {line.partition("==")[0] for line in of_build}


def test_packages_are_locked(image: Stage) -> None:
    installs = [value for value in image.values("RUN") if "pip install" in value]
    assert "pip install --require-hashes -r /tmp/requirements.lock" in installs[0]
    assert "requirements.lock" in image.copied
    assert "--no-deps --no-index" in installs[1]
    assert len(installs) == 2
    lock = (PROJECT / "requirements.lock").read_text(encoding="utf-8")
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for needed in project["dependencies"]:
        name = needed.partition(">")[0].replace(".", "-")
        assert f"\n{name}==" in lock, name


def test_it_runs_the_daemon_without_rights(image: Stage) -> None:
    (user,) = image.values("USER")
    number = user.partition(":")[0]
    assert number.isdigit()
    assert int(number) > 0
    made = " ".join(image.values("RUN"))
    assert f"useradd --system --uid {number} " in made
    (folder,) = image.values("WORKDIR")
    assert f"install -d -o mtsd -g mtsd -m 0700 {folder}" in made
    # What is set by the last USER is not undone by a later step of root's.
    names = [name for name, _ in image.steps]
    assert "RUN" not in names[names.index("USER") :]


def test_its_commands_are_commands_of_mtsd(image: Stage) -> None:
    (entry_point,), (command,) = image.values("ENTRYPOINT"), image.values("CMD")
    assert json.loads(entry_point) == ["mtsd"]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["scripts"]) == {"mtsd"}
    assert json.loads(command) == ["run", "--config", "/etc/mtsd/config.toml"]
    (health,) = image.values("HEALTHCHECK")
    options, _, check = health.partition("CMD ")
    shell = ["sh", "-c", "mtsd status --config /etc/mtsd/config.toml || exit 1"]
    assert json.loads(check) == shell
    assert "--timeout=" in options
    assert image.values("STOPSIGNAL") == ["SIGTERM"]
