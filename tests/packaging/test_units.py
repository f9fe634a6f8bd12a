"""The systemd units: what they promise, and that systemd has nothing against them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mtsd.config import FIELDS, Settings
from mtsd.config.kinds import is_file, is_secret
from mtsd.model.outcome.exit_status import ExitStatus
from tests.packaging.locations import PROJECT

UNITS = {
    # The file, and the name under which an instance of it is looked at.
    "mtsd.service": "mtsd.service",
    "mtsd@.service": "mtsd@one.service",
}

MAX_EXPOSURE = 1.5
"""Of 10, as `systemd-analyze security` counts."""

SECONDS_TO_SPARE = 20

CREDENTIALS_FAILED = 243
"""systemd's own exit status where a credential cannot be set up (systemd.exec(5))."""

Unit = dict[str, dict[str, list[str]]]


def read(name: str) -> Unit:
    """Read a unit: section, setting, its values in order (systemd.syntax(7))."""
    sections: Unit = {}
    current: dict[str, list[str]] = {}
    for line in (PROJECT / "systemd" / name).read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
            continue
        setting, equals, value = line.partition("=")
        assert equals, line
        current.setdefault(setting, []).append(value)
    return sections


@pytest.fixture(params=UNITS)
def unit(request: pytest.FixtureRequest) -> Unit:
    return read(str(request.param))


def test_it_says_what_the_daemon_keeps_to(unit: Unit) -> None:
    assert set(unit) == {"Unit", "Service", "Install"}
    service = unit["Service"]
    assert service["Type"] == ["notify"]
    assert service["NotifyAccess"] == ["main"]
    assert int(service["WatchdogSec"][0]) > 0
    assert service["LimitCORE"] == ["0"]
    program, *arguments = service["ExecStart"][0].split()
    assert Path(program).is_absolute()
    assert arguments[:2] == ["run", "--config"]
    assert service["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert service["KillSignal"] == ["SIGTERM"]
    graceful = Settings().replica.stop_timeout + SECONDS_TO_SPARE
    assert int(service["TimeoutStopSec"][0]) >= graceful
    assert unit["Unit"]["StartLimitIntervalSec"] == ["0"]
    assert unit["Install"]["WantedBy"] == ["multi-user.target"]


@pytest.mark.parametrize(
    ("end", "restarts"),
    [
        (ExitStatus.DONE, False),
        (ExitStatus.FAILED, True),
        (ExitStatus.BAD_USAGE, False),
        (ExitStatus.NEEDS_PERSON, False),
        (CREDENTIALS_FAILED, False),
        ("SIGKILL", True),
        ("SIGSEGV", True),
        ("watchdog", True),
        ("SIGTERM", False),
    ],
)
def test_it_comes_back_where_that_can_help(unit: Unit, end: int | str, restarts: bool) -> None:
    service = unit["Service"]
    assert service["Restart"] == ["on-failure"]
    # systemd.service(5): after an unclean exit status, signal or time-out, and the watchdog's end.
    unclean = end not in {0, "SIGHUP", "SIGINT", "SIGTERM", "SIGPIPE"}
    (prevented,) = service["RestartPreventExitStatus"]
    names = {str(CREDENTIALS_FAILED): "CREDENTIALS"}
    assert (unclean and names.get(str(end), str(end)) not in prevented.split()) == restarts
    assert float(service["RestartSec"][0]) >= 1


def test_it_gives_the_daemon_no_more_than_it_needs(unit: Unit) -> None:
    service = unit["Service"]
    families = set(service["RestrictAddressFamilies"][0].split())
    assert families == {"AF_UNIX", "AF_INET", "AF_INET6"}
    expected = {
        "DynamicUser": "yes",
        "ProtectSystem": "strict",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "AmbientCapabilities": "",
        "MemoryDenyWriteExecute": "yes",
        "SystemCallArchitectures": "native",
    }
    assert {name: service[name][-1] for name in expected} == expected
    assert service["SystemCallFilter"] == ["@system-service", "~@privileged @resources"]
    # The one folder that it may write to is its own.
    (folder,) = service["RuntimeDirectory"]
    assert service["WorkingDirectory"] == [f"/run/{folder}"]


@pytest.mark.parametrize("name", UNITS)
def test_its_credentials_are_keys_of_the_configuration(name: str) -> None:
    text = (PROJECT / "systemd" / name).read_text(encoding="utf-8")
    found = re.findall(r"^(#?)LoadCredential(?:Encrypted)?=([\w.]+):", text, re.MULTILINE)
    for _, key in found:
        assert is_secret(FIELDS[key]) or is_file(FIELDS[key]), key
    passwords = {key for key, field in FIELDS.items() if is_secret(field)}
    assert {key for commented, key in found if not commented} == passwords


def test_the_template_is_the_unit_once_for_each_instance() -> None:
    one, template = read("mtsd.service"), read("mtsd@.service")
    apart = {
        setting: (values, template[section][setting])
        for section, settings in one.items()
        for setting, values in settings.items()
        if values != template[section][setting]
    }
    assert {section: set(settings) for section, settings in one.items()} == {
        section: set(settings) for section, settings in template.items()
    }
    command = "/usr/local/bin/mtsd run --config /etc/mtsd/"
    assert apart == {
        "Description": (
            ["MySQL replica outside the server"],
            ["MySQL replica outside the server, %i"],
        ),
        "ExecStart": ([f"{command}config.toml"], [f"{command}%i.toml"]),
        "LoadCredential": (
            [f"{role}.password:/etc/mtsd/{role}.password" for role in ("source", "target")],
            [f"{role}.password:/etc/mtsd/%i.{role}.password" for role in ("source", "target")],
        ),
        "RuntimeDirectory": (["mtsd"], ["mtsd-%i"]),
        "WorkingDirectory": (["/run/mtsd"], ["/run/mtsd-%i"]),
    }


@pytest.mark.parametrize("name", UNITS)
def test_systemd_has_nothing_against_it(name: str, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None or version(analyze) < 250:
        pytest.skip("no systemd-analyze of 250 or later; the other tests read the unit themselves")
    # Verifying looks for the programs too.
    copy = tmp_path / UNITS[name]
    text = (PROJECT / "systemd" / name).read_text(encoding="utf-8")
    text, programs = re.subn(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
    assert programs == 1
    copy.write_text(text)
    assert ran(analyze, "verify", "--man=no", str(copy)) == ""
    threshold = f"--threshold={MAX_EXPOSURE * 10:.0f}"
    told = ran(analyze, "security", "--no-pager", "--offline=true", threshold, str(copy))
    exposure = re.search(rf"Overall exposure level for {UNITS[name]}: ([\d.]+)", told)
    assert exposure, told
    assert float(exposure[1]) <= MAX_EXPOSURE


def version(analyze: str) -> int:
    found = re.match(r"systemd (\d+)", ran(analyze, "--version"))
    return int(found[1]) if found else 0


def ran(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
