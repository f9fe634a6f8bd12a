"""The wheel with compiled modules: what is in it, and that it does what the pure one does."""

import os
import runpy
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from mtsd import __version__
from tests.packaging.building import BuildError, build
from tests.packaging.compiled import digest_of, make_project, provide_wheel
from tests.packaging.dockerfile import copied
from tests.packaging.installing import Environment
from tests.packaging.locations import PROJECT, package_files
from tests.packaging.toolchain import toolchain

# Compiling takes its time, and the machine may have other work.
pytestmark = pytest.mark.timeout(1800)
WHOLE_SUITE = pytest.mark.timeout(0)
"""Each of the tests inside has its own limit."""

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


DIRECT = (
    "tests/binlog/events/test_event_reader.py", "tests/binlog/groups/test_grouper.py",
    "tests/binlog/events/test_gtid_event.py", "tests/binlog/events/test_mariadb.py",
    "tests/binlog/groups/test_plain_transactions.py",
    "tests/binlog/groups/test_recorded_groups.py", "tests/binlog/groups/test_rewrite.py",
    "tests/model", "tests/plan/test_simulation.py", "tests/schedule",
    "tests/apply/rows/test_bundle.py", "tests/apply/tables/test_changed_keys.py",
    "tests/wire/test_framing.py",
)  # fmt: skip
"""What tests the compiled modules directly, and goes through small worlds."""
WHOLE = (
    *(f"tests/{folder}" for folder in ("binlog", "model", "schedule", "apply", "wire")),
    "tests/replica/run/test_equality.py", "tests/replica/recovery/test_kills.py",
)  # fmt: skip


@pytest.fixture(scope="module")
def wheel() -> Path:
    return provide_wheel()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    folder = tmp_path_factory.mktemp("compiled") / "project"
    make_project(folder, wheel)
    return folder


def compiled_modules() -> list[str]:
    document = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = document["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]
    modules: list[str] = hook["compiled"]
    return modules


def test_it_holds_the_pure_modules_and_those_that_are_compiled(wheel: Path) -> None:
    assert f"-cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.startswith(f"mtsd-{__version__}")}
    compiled = {name.removesuffix(".py") + SUFFIX for name in compiled_modules()}
    assert names == package_files() | compiled | {f"mtsd__mypyc{SUFFIX}"}


def test_it_is_built_anew_when_its_sources_change(tmp_path: Path) -> None:
    context = copied(tmp_path / "context")
    before = digest_of(context)
    (context / "mtsd" / "model" / "x.pyc").write_bytes(b"")
    assert digest_of(context) == before
    with (context / "mtsd" / "model" / "build.py").open("a") as file:
        file.write("# changed\n")
    assert digest_of(context) not in {before, digest_of(PROJECT)}


def test_it_is_compiled_by_what_checks_the_types() -> None:
    build_system = runpy.run_path(str(PROJECT / "hatch_build.py"))
    document = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert build_system["_MYPY"] in document["dependency-groups"]["build"]


def test_building_it_leaves_nothing_in_the_tree(wheel: Path) -> None:
    del wheel
    assert not list((PROJECT / "mtsd").rglob(f"*{SUFFIX}"))


def test_pip_installs_a_command_that_runs(wheel: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "venv")
    environment.install(wheel)
    environment.check_that_it_runs(f"mtsd {__version__} (compiled)")
    modules = [name.removesuffix(".py").replace("/", ".") for name in compiled_modules()]
    places = (
        "import sys, importlib as i; [print(i.import_module(m).__file__) for m in sys.argv[1:]]"
    )
    where = environment.ran(environment.python, "-c", places, *modules).split()
    assert len(where) == len(modules)
    assert [place for place in where if not place.endswith(SUFFIX)] == []
    environment.uninstall()
    assert not list(tmp_path.rglob("mtsd__mypyc*"))


@WHOLE_SUITE
def test_its_modules_decide_what_the_pure_ones_decide(project: Path) -> None:
    assert_passes(project, *DIRECT)


@WHOLE_SUITE
def test_it_replicates(project: Path) -> None:
    streamed, held = "test_backlog and small", "test_equal and database-4"
    assert_passes(
        project, "tests/replica/run/test_equality.py", "tests/replica/policies/test_policies.py",
        "-k", f"({streamed}) or ({held})",
    )  # fmt: skip


@pytest.mark.long
@WHOLE_SUITE
def test_it_does_all_that_the_pure_ones_do(project: Path) -> None:
    assert_passes(project, *WHOLE)


def assert_passes(project: Path, *paths: str) -> None:
    options = ["-q", "-m", "not long", "-p", "no:cacheprovider", "-p", "no:xdist"]
    # It is no part of the run that it is started by.
    environ = {name: value for name, value in os.environ.items() if "PYTEST_" not in name}
    for arguments in (["mtsd", "--version"], ["pytest", *options, *paths]):
        done = subprocess.run(
            [sys.executable, "-m", *arguments], cwd=project, env=environ,
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert arguments[0] == "pytest" or "(compiled)" in done.stdout


def test_without_a_compiler_there_is_one_clear_line(tmp_path: Path) -> None:
    context = copied(tmp_path / "context")
    document = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    _, *others = compiled_modules()
    for module in others:
        document = document.replace(f'    "{module}",\n', "")
    (context / "pyproject.toml").write_text(document)
    environ = {"COMPILE_MTSD": "1", "CC": "/nowhere/cc"}
    with pytest.raises(BuildError) as failed:
        build("wheel", context, tmp_path / "wheel", environ)
    *_, last = str(failed.value).splitlines()
    assert last.startswith("COMPILE_MTSD=1 needs a C compiler and Python's headers (gcc, python3")
    assert "/nowhere/cc" in last
    assert "Traceback" not in str(failed.value)


def test_a_module_that_has_moved_ends_the_build(tmp_path: Path) -> None:
    context = copied(tmp_path / "context")
    document = (PROJECT / "pyproject.toml").read_text(encoding="utf-8")
    (first, *_) = compiled_modules()
    (context / "pyproject.toml").write_text(document.replace(first, "mtsd/gone.py"))
    with pytest.raises(BuildError, match=r"^pyproject.toml lists .* do not exist: mtsd/gone.py\n$"):
        build("wheel", context, tmp_path / "wheel", {"COMPILE_MTSD": "1"})


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="it takes Debian's headers")
def test_a_machine_without_compiler_and_headers_gets_both(tmp_path: Path) -> None:
    variables = toolchain(home=tmp_path / "toolchain", own_only=True)
    assert str(tmp_path) in variables["CC"]
    (tmp_path / "wheel").mkdir()
    wheel = build("wheel", PROJECT, tmp_path / "wheel", {**variables, "COMPILE_MTSD": "1"})
    environment = Environment(tmp_path / "venv")
    environment.install(wheel)
    environment.check_that_it_runs(f"mtsd {__version__} (compiled)")
