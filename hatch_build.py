"""The wheel's build hook: with COMPILE_MTSD=1 in the environment, mypyc compiles its hot modules.

`compiled` in pyproject.toml, [tool.hatch.build.targets.wheel.hooks.custom], lists them. The wheel
contains their source as well; Python imports the compiled module if it finds both. It needs a C
compiler and Python's headers, and fails without them: nobody gets the slower build unawares.
(A variable of the form MTSD_... would be a setting of mtsd, and an unknown one.) Two are mypyc's
own: MYPYC_OPT_LEVEL is how much the C compiler optimizes, 3 unless it is set, and MYPYC_DEBUG_LEVEL
how much it tells a debugger, 1 unless it is set.
"""

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# It compiles with the same versions as the tests do.
_MYPY = "mypy>=2.4,<2.5"
# The project's own run of mypy is the strict one; here mtsd's dependencies may be missing.
_MYPY_OPTIONS = ["--config-file=", "--ignore-missing-imports"]
_LIBRARY = "mtsd"
"""The compiled modules are stubs that load one library beside the package, `mtsd__mypyc`."""


class CompileHook(BuildHookInterface):  # type: ignore[type-arg]  # its argument is hatchling's own
    """Compiles if requested; an editable install stays uncompiled, so that it can be edited."""

    _folder: Path | None = None

    def dependencies(self) -> list[str]:
        """Return what the build needs in addition to the backend."""
        return [_MYPY, "setuptools>=77"] if _is_asked_for() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled modules to the wheel; raises SystemExit if one cannot be built."""
        if version == "editable" or not _is_asked_for():
            return
        modules: list[str] = self.config["compiled"]
        self._folder = folder = Path(mkdtemp(prefix="mtsd-build-"))
        try:
            made = _compiled(Path(self.root), modules, folder)
        except BaseException:
            shutil.rmtree(folder)
            raise
        for path in made:
            build_data["force_include"][str(path)] = str(path.relative_to(folder / "lib"))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        del version, build_data, artifact_path
        if self._folder is not None:
            shutil.rmtree(self._folder)


def _is_asked_for() -> bool:
    return os.environ.get("COMPILE_MTSD", "") not in {"", "0"}


def _compiled(root: Path, modules: list[str], folder: Path) -> list[Path]:
    """Compile `modules`, paths under `root`, into `folder`/lib; return the resulting files."""
    from mypyc.build import mypycify  # noqa: PLC0415  # only this build needs them
    from setuptools import Distribution  # noqa: PLC0415
    from setuptools.errors import CompileError, LinkError, PlatformError  # noqa: PLC0415

    if absent := [module for module in modules if not (root / module).is_file()]:
        raise SystemExit(
            f"pyproject.toml lists modules to be compiled that do not exist: {', '.join(absent)}"
        )
    before = Path.cwd()
    os.chdir(root)
    try:
        extensions = mypycify(
            [*_MYPY_OPTIONS, f"--cache-dir={folder / 'cache'}", *modules],
            opt_level=os.environ.get("MYPYC_OPT_LEVEL", "3"),
            debug_level=os.environ.get("MYPYC_DEBUG_LEVEL", "1"),
            group_name=_LIBRARY,
            target_dir=str(folder / "c"),
        )
        for extension in extensions:
            # Three quarters of a build went into warnings, for which nobody reads generated C.
            extension.extra_compile_args.append("-Wno-all")
        distribution = Distribution({"name": _LIBRARY, "ext_modules": extensions})
        command = distribution.get_command_obj("build_ext")
        command.build_lib = str(folder / "lib")
        command.build_temp = str(folder / "temporary")
        command.ensure_finalized()
        command.run()
    except (CompileError, LinkError, PlatformError) as error:
        raise SystemExit(
            f"COMPILE_MTSD=1 needs a C compiler and Python's headers (gcc, python3-dev): {error}"
        ) from error
    finally:
        os.chdir(before)
    return sorted((folder / "lib").rglob("*.so"))
