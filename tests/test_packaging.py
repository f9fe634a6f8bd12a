"""The files around the daemon: the systemd unit, the image, the composition, the wheel."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from mtsd.config import Loaded, Settings, load
from tests.servers.mysqld import Server

PROJECT = Path(__file__).parents[1]
UNIT = PROJECT / "systemd" / "mtsd.service"

MOST_EXPOSURE = 1.5
"""Of 10, as `systemd-analyze security` counts."""

SECONDS_TO_SPARE = 10


@pytest.fixture(scope="module")
def unit() -> dict[str, dict[str, list[str]]]:
    """Read the unit: section, setting, its values in order (systemd.syntax(7))."""
    sections: dict[str, dict[str, list[str]]] = {}
    current: dict[str, list[str]] = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
            continue
        name, equals, value = line.partition("=")
        assert equals, line
        current.setdefault(name, []).append(value)
    return sections


def test_the_unit_says_what_the_daemon_keeps_to(unit: dict[str, dict[str, list[str]]]) -> None:
    assert set(unit) == {"Unit", "Service", "Install"}
    service = unit["Service"]
    assert service["Type"] == ["notify"]
    assert service["NotifyAccess"] == ["main"]
    assert int(service["WatchdogSec"][0]) > 0
    program, *arguments = service["ExecStart"][0].split()
    assert Path(program).is_absolute()
    assert arguments == ["run", "--config", "/etc/mtsd/config.toml"]
    assert service["Restart"] == ["on-failure"]
    assert service["RestartPreventExitStatus"] == ["2 3"]
    assert service["KillSignal"] == ["SIGTERM"]
    graceful = Settings().replica.stop_timeout + SECONDS_TO_SPARE
    assert int(service["TimeoutStopSec"][0]) >= graceful
    assert unit["Unit"]["StartLimitIntervalSec"] == ["0"]
    assert unit["Install"]["WantedBy"] == ["multi-user.target"]


def test_the_unit_gives_the_daemon_no_more_than_it_needs(
    unit: dict[str, dict[str, list[str]]],
) -> None:
    service = unit["Service"]
    families = set(service["RestrictAddressFamilies"][0].split())
    assert families == {"AF_UNIX", "AF_INET", "AF_INET6"}
    expected = {
        "DynamicUser": "yes",
        "RuntimeDirectory": "mtsd",
        "ProtectSystem": "strict",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "AmbientCapabilities": "",
        "MemoryDenyWriteExecute": "yes",
        "SystemCallArchitectures": "native",
    }
    assert {name: service[name][-1] for name in expected} == expected
    assert service["SystemCallFilter"] == ["@system-service", "~@privileged @resources"]


def test_the_units_examples_are_keys_of_the_configuration() -> None:
    text = UNIT.read_text(encoding="utf-8")
    credentials = re.findall(r"^#LoadCredential(?:Encrypted)?=([\w.]+):", text, re.MULTILINE)
    assert len(credentials) > 2
    settings = Settings()
    for credential in credentials:
        section, _, key = credential.partition(".")
        assert hasattr(getattr(settings, section), key), credential


def test_systemd_has_nothing_against_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None or _version(analyze) < 250:
        # What it would have found is checked above, line by line.
        return
    told = _run(analyze, "security", "--no-pager", "--offline=true", str(UNIT))
    exposure = re.search(r"Overall exposure level for mtsd\.service: ([\d.]+)", told)
    assert exposure, told
    assert float(exposure[1]) <= MOST_EXPOSURE
    # Verifying looks for the program too.
    copy = tmp_path / UNIT.name
    text = UNIT.read_text(encoding="utf-8")
    copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE))
    told = _run(analyze, "verify", str(copy))
    assert [line for line in told.splitlines() if UNIT.name in line] == []


def _version(analyze: str) -> int:
    found = re.match(r"systemd (\d+)", _run(analyze, "--version"))
    return int(found[1]) if found else 0


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_composition_starts_mtsd_between_two_healthy_servers() -> None:
    services = _services()
    assert set(services) == {"source", "target", "mtsd"}
    mtsd = services["mtsd"]
    for server in ("source", "target"):
        assert f"      {server}:\n        condition: service_healthy\n" in mtsd
        assert "<<: *mysql" in services[server]
        assert (
            f"./docker/{server}.sql:/docker-entrypoint-initdb.d/{server}.sql:ro"
            in (services[server])
        )
        # Both ends get the same password, and it is a key's environment variable.
        password = re.findall(r": (\$\{MTSD_\w+__PASSWORD:-\w+\})", services[server])
        assert password == [f"${{MTSD_{server.upper()}__PASSWORD:-{password[0].split('-')[1]}"]
        assert f"      MTSD_{server.upper()}__PASSWORD: {password[0]}\n" in mtsd
    assert "    stop_signal: SIGTERM\n" in mtsd
    assert "    restart: on-failure\n" in mtsd
    grace = re.search(r"^    stop_grace_period: (\d+)s$", mtsd, re.MULTILINE)
    assert grace
    graceful = _composed().settings.replica.stop_timeout + SECONDS_TO_SPARE
    assert int(grace[1]) >= graceful
    for path in re.findall(r"- \./(\S+?):/", "".join(services.values())):
        assert (PROJECT / path).is_file(), path


def test_the_composition_configures_mtsd() -> None:
    loaded = _composed()
    assert loaded.warnings == ()
    settings = loaded.settings
    assert settings.source.password.get_secret_value() == "one"
    assert settings.target.password.get_secret_value() == "two"
    services = _services()
    for endpoint in (settings.source, settings.target):
        assert endpoint.host in services
        assert endpoint.port == 3306
        assert f"MYSQL_USER: {endpoint.user}\n" in services[endpoint.host]
    folder = str(settings.status.socket.parent) if settings.status.socket else ""
    assert f"- {folder}:uid=4201,gid=4201,mode=0700\n" in services["mtsd"]
    assert "--uid 4201" in (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    assert str(settings.source.server_id) not in re.findall(
        r"--server-id=(\d+)", "".join(services.values())
    )


@pytest.mark.servers
@pytest.mark.parametrize(("role", "user"), [("source", "repl"), ("target", "mtsd")])
def test_the_servers_of_the_composition_are_prepared(role: str, user: str) -> None:
    with Server() as server:
        # As the image does it, before it runs the file.
        server.sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'p'")
        server.tool("mysql", stdin=(PROJECT / "docker" / f"{role}.sql").read_bytes())
        assert server.sql("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.log_bin") == [("", 1)]
        assert len(server.sql("SHOW BINARY LOGS")) == 1
        granted = str(server.sql(f"SHOW GRANTS FOR '{user}'@'%'"))
        assert ("REPLICATION SLAVE" in granted, "CREATE USER" in granted) == (
            True,
            role == "target",
        )


def _composed() -> Loaded:
    environ = {"MTSD_SOURCE__PASSWORD": "one", "MTSD_TARGET__PASSWORD": "two"}
    return load(PROJECT / "docker" / "config.toml", {}, environ, None)


def _services() -> dict[str, str]:
    """Cut the composition into the texts of its services, by their indentation."""
    text = (PROJECT / "docker-compose.yml").read_text(encoding="utf-8")
    assert "\t" not in text
    (body,) = re.findall(r"^services:\n(.*?)^\S", text, re.DOTALL | re.MULTILINE)
    parts = re.split(r"^  (\w+):\n", body, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_image_is_built_of_locked_packages_for_a_user_without_rights() -> None:
    text = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    steps = re.sub(r"\\\n\s*", "", text).splitlines()
    assert "RUN pip install --require-hashes -r /tmp/requirements.lock" in steps
    assert "USER mtsd" in steps
    assert "STOPSIGNAL SIGTERM" in steps
    assert 'CMD ["mtsd", "status", "--config", "/etc/mtsd/config.toml"]' in text
    assert steps[-2:] == [
        'ENTRYPOINT ["mtsd"]',
        'CMD ["run", "--config", "/etc/mtsd/config.toml"]',
    ]
    kept = set((PROJECT / ".dockerignore").read_text(encoding="utf-8").splitlines())
    copied = [
        name
        for step in steps
        if step.startswith("COPY ")
        for name in step.split()[1:-1]
    ]  # fmt: skip
    assert copied
    for name in copied:
        assert f"!{name}" in kept, name
        assert (PROJECT / name).exists(), name


def test_the_wheel_holds_the_package_alone() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["mtsd"]}
    assert (PROJECT / "mtsd" / "py.typed").is_file()
    folders = {path.parent for path in (PROJECT / "mtsd").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    needed = [project["project"]["readme"], *project["project"]["license-files"], *included]
    assert [name for name in needed if not (PROJECT / name).exists()] == []
    licence = (PROJECT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in licence
    assert "APPENDIX: How to apply the Apache License" in licence
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "## [Unreleased]" in changelog
