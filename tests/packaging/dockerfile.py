"""The Dockerfile, read: its instructions, and what each of its stages copies into the image."""

import io
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from dockerfile_parse import DockerfileParser

from tests.packaging.locations import PROJECT


@dataclass(slots=True)
class Stage:
    """One FROM and what follows it, as (instruction, value); `image` is the default one."""

    image: str
    name: str = ""
    steps: list[tuple[str, str]] = field(default_factory=list)

    def values(self, instruction: str) -> list[str]:
        return [value for name, value in self.steps if name == instruction]

    @property
    def copied(self) -> list[str]:
        """What comes from the project's folder."""
        return [name for value in self.values("COPY") for name in value.split()[:-1]]


def stages() -> list[Stage]:
    """Read the Dockerfile."""
    content = (PROJECT / "Dockerfile").read_bytes()
    found: list[Stage] = []
    defaults: dict[str, str] = {}
    for step in DockerfileParser(fileobj=io.BytesIO(content)).structure:
        instruction, value = str(step["instruction"]), str(step["value"])
        if instruction == "COMMENT":
            continue
        if instruction == "FROM":
            image, _, name = value.partition(" AS ")
            found.append(Stage(Template(image).substitute(defaults), name))
        elif not found:
            name, _, default = value.partition("=")
            defaults[name] = default
        else:
            found[-1].steps.append((instruction, value))
    return found


def copied(context: Path) -> Path:
    """Copy what the first stage copies, which so proves to be enough to build with."""
    context.mkdir()
    for name in stages()[0].copied:
        if (PROJECT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / name, context / name, ignore=unwanted)
        else:
            shutil.copy2(PROJECT / name, context / name)
    return context
