"""Command line over environment over credentials over the file, and wrong values from each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

import pytest

from mtsd.config import FIELDS, ConfigurationError, document, environment_variable, load
from mtsd.config.kinds import is_file, is_path, is_plain_text, is_secret
from mtsd.config.loading import Loaded
from tests.config.generated import Way, ways
from tests.config.wrong_values import NUMBERS, WORDS, WRONG_VALUES, kind_of

FILE, CREDENTIAL, ENVIRONMENT, COMMAND_LINE = LAYERS = (
    "file", "systemd credential", "environment variable", "command line",
)  # fmt: skip

Settle = Callable[[str, Mapping[str, str]], "Given"]


@dataclass(slots=True)
class Given:
    """What is given in each layer; `load` reads it all."""

    folder: Path
    toml: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.credentials.mkdir(exist_ok=True)
        for old in self.credentials.iterdir():
            old.unlink()

    @property
    def credentials(self) -> Path:
        return self.folder / "credentials"

    def give(self, layer: str, key: str, way: Way) -> None:
        if layer == FILE:
            self.toml[key] = way.toml
        elif layer == CREDENTIAL:
            (self.credentials / key).write_text(way.text + "\n")
        elif layer == ENVIRONMENT:
            self.environ[environment_variable(key)] = way.text
        else:
            self.overrides[key] = way.text

    def load(self) -> Loaded:
        path = self.folder / "mtsd.toml"
        sections: dict[str, str] = {}
        for key, text in self.toml.items():
            section, _, name = key.partition(".")
            sections[section] = sections.get(section, "") + f"{name} = {text}\n"
        path.write_text("".join(f"[{name}]\n{body}" for name, body in sections.items()))
        path.chmod(0o600)
        return load(path, self.overrides, self.environ, self.credentials)


def companions(key: str) -> dict[str, str]:
    """Return what has to be given beside a key for it to stand."""
    section, _, name = key.partition(".")
    fitting = {
        "tls_cert": {f"{section}.tls_key": "/key"},
        "tls_key": {f"{section}.tls_cert": "/cert"},
        "host": {f"{section}.port": "1"},
        "port": {f"{section}.host": "elsewhere"},
        "unix_socket": {f"{section}.host": ""},
        "batch_bytes": {"replica.pending_jobs_size_max": str(2**40)},
        "pending_jobs_size_max": {"replica.batch_bytes": "1024"},
        "split_transactions": {"replica.consistency": "eventual"},
        "newer_row_column": {"replica.consistency": "eventual"},
    }
    return fitting.get(name, {})


def password_files(folder: Path) -> tuple[Way, Way]:
    made = []
    for name in ("one", "two"):
        path = folder / name
        path.write_text(name)
        path.chmod(0o600)
        made.append(Way(str(path), f'"{path}"', str(path)))
    return made[0], made[1]


@pytest.mark.parametrize("key", FIELDS)
def test_the_highest_layer_wins(key: str, tmp_path: Path) -> None:
    lower, higher = password_files(tmp_path) if key.endswith("_file") else ways(key)
    for count in range(1, len(LAYERS) + 1):
        for layers in combinations(LAYERS, count):
            given = Given(tmp_path, overrides=companions(key))
            for layer in layers:
                given.give(layer, key, higher if layer == layers[-1] else lower)
            loaded = given.load()
            assert loaded.origins[key].startswith(layers[-1]), layers
            if layers[-1] == CREDENTIAL and is_file(FIELDS[key]):
                expected: object = str(given.credentials / key)
            else:
                expected = higher.value
            if is_secret(FIELDS[key]):
                section, _, name = key.partition(".")
                secret = getattr(getattr(loaded.settings, section), name)
                assert secret.get_secret_value() == expected
            else:
                assert document(loaded.settings)[key] == expected, layers
            untouched = FIELDS.keys() - {key, *companions(key), key.removesuffix("_file")}
            assert all(loaded.origins[other] == "default" for other in untouched)


def wrong_text(key: str) -> str | None:
    """Return a text that the key must refuse wherever it comes from; None if it takes any."""
    if key in NUMBERS:
        return "many"
    if key in WORDS:
        return "no_such_word"
    if kind_of(key) is bool:
        return "yes"
    paths = ("_file", "tls_ca", "tls_cert", "tls_key", "server_public_key")
    if is_secret(FIELDS[key]) or key.endswith(paths):
        return None
    text = WRONG_VALUES[key][-1 if not is_path(FIELDS[key]) else 0]
    return text.strip('"').replace("\\n", "\n") if is_plain_text(FIELDS[key]) else text


WRONG = {key: text for key in FIELDS if (text := wrong_text(key)) is not None}


@pytest.mark.parametrize("layer", [ENVIRONMENT, CREDENTIAL, COMMAND_LINE])
@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_value_is_refused_wherever_it_comes_from(
    key: str, layer: str, tmp_path: Path
) -> None:
    given = Given(tmp_path)
    given.give(layer, key, Way(None, "", WRONG[key]))
    with pytest.raises(ConfigurationError) as caught:
        given.load()
    problem = caught.value.problems[0]
    assert problem.key.split("[")[0] == key
    assert problem.origin.startswith(layer)
    assert problem.allowed.startswith("allowed is ")
    if layer == CREDENTIAL:
        # It was put where secrets are, and may be one.
        assert problem.found == "found a value that is not shown"
    else:
        assert problem.found.startswith("found ")


def test_all_wrong_values_of_all_layers_are_one_report(tmp_path: Path) -> None:
    given = Given(tmp_path)
    layer_of = {}
    for number, key in enumerate(WRONG):
        layer_of[key] = LAYERS[1:][number % 3]
        given.give(layer_of[key], key, Way(None, "", WRONG[key]))
    with pytest.raises(ConfigurationError) as caught:
        given.load()
    reported = {problem.key.split("[")[0]: problem for problem in caught.value.problems}
    assert reported.keys() == WRONG.keys()
    for key, problem in reported.items():
        assert problem.origin.startswith(layer_of[key])
