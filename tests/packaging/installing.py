"""A virtual environment for one test, in which a wheel is installed by pip and run."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from pathlib import Path


class Environment:
    """Made in `folder`; `locked`: with what mtsd needs, in the versions of the lock."""

    def __init__(self, folder: Path, *, locked: bool = True) -> None:
        venv.create(folder)
        self._folder = folder
        (self._packages,) = folder.glob("lib/python3.*/site-packages")
        if locked:
            path = f"{sysconfig.get_path('purelib')}\n"
            (self._packages / "locked.pth").write_text(path)

    @property
    def python(self) -> Path:
        return self._folder / "bin" / "python"

    def pip(self, *arguments: object, environ: Mapping[str, str] | None = None) -> None:
        """Run pip on it."""
        command = (sys.executable, "-m", "pip", "--python", self.python, *arguments)
        self.ran(*command, environ=environ)

    def install(self, wheel: Path) -> None:
        """Install a wheel, and nothing that it needs."""
        self.pip("install", "--quiet", "--no-index", "--no-deps", wheel)

    def uninstall(self) -> None:
        """Uninstall mtsd, which must leave nothing behind."""
        self.pip("uninstall", "--quiet", "--yes", "mtsd")
        assert not (self._folder / "bin" / "mtsd").exists()
        assert not list(self._packages.glob("mtsd*"))

    def check_that_it_runs(self, version: str) -> None:
        """Run the command that is installed."""
        command = self._folder / "bin" / "mtsd"
        assert self.ran(command, "--version") == f"{version}\n"
        assert "example:" in self.ran(command, "run", "--help")
        where = self.ran(self.python, "-c", "import mtsd; print(mtsd.__file__)")
        assert where.startswith(str(self._folder))
        configuration = self._folder / "config.toml"
        configuration.write_text("[source]\nserver_id = 7\n")
        shown = self.ran(command, "config", "show", "--config", configuration)
        assert "source.server_id" in shown

    def ran(self, *command: object, environ: Mapping[str, str] | None = None) -> str:
        """Run a command in its folder; returns what it prints."""
        clean = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
        done = subprocess.run(
            [str(word) for word in command], cwd=self._folder, env={**clean, **(environ or {})},
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
