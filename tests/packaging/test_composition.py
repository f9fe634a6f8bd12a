"""docker-compose.yml, as far as it can be checked without an engine."""

import re
from pathlib import Path
from typing import TypedDict

import pytest
import yaml

from mtsd.config import FIELDS, Loaded, load
from mtsd.operations.check.grants import statements
from tests.packaging.dockerfile import stages
from tests.packaging.locations import PROJECT
from tests.servers.mysqld import Server

SECONDS_TO_SPARE = 20

SERVERS = ("source", "target")


class Service(TypedDict, total=False):
    """What is looked at of a service."""

    image: str
    build: str
    command: list[str]
    environment: dict[str, str]
    secrets: list[str]
    volumes: list[str]
    ports: list[str]
    healthcheck: dict[str, object]
    depends_on: dict[str, dict[str, str]]
    restart: str
    stop_signal: str
    stop_grace_period: str
    read_only: bool
    tmpfs: list[str]
    cap_drop: list[str]
    security_opt: list[str]


class Composition(TypedDict):
    """What is looked at of the file."""

    services: dict[str, Service]
    volumes: dict[str, None]
    secrets: dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def composition() -> Composition:
    text = (PROJECT / "docker-compose.yml").read_text(encoding="utf-8")
    document: Composition = yaml.safe_load(text)
    return document


@pytest.fixture(scope="module")
def services(composition: Composition) -> dict[str, Service]:
    return composition["services"]


@pytest.fixture(scope="module")
def passwords(composition: Composition) -> dict[str, str]:
    """Return the password in each secret."""
    found = {}
    for name, secret in composition["secrets"].items():
        found[name] = (PROJECT / secret["file"]).read_text(encoding="utf-8").strip()
    return found


@pytest.fixture(scope="module")
def loaded(
    services: dict[str, Service],
    passwords: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Loaded:
    """Load the configuration as the daemon in the composition does."""
    (mounted,) = [text for text in services["mtsd"]["volumes"] if ".toml" in text]
    file, inside, mode = mounted.split(":")
    assert mode == "ro"
    assert inside in stages()[-1].values("CMD")[0]
    folder = tmp_path_factory.mktemp("secrets")
    config = folder / "config.toml"
    text = (PROJECT / file).read_text(encoding="utf-8")
    config.write_text(text.replace("/run/secrets", str(folder)), encoding="utf-8")
    for name in services["mtsd"]["secrets"]:
        secret = folder / name
        secret.write_text(passwords[name], encoding="utf-8")
        secret.chmod(0o600)
    return load(config, {}, {}, None)


def default(text: str) -> str:
    """Return what Compose puts in for ${NAME:-DEFAULT} where NAME is not set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+)s", text)
    assert found, text
    return int(found[1])


def test_mtsd_starts_between_two_healthy_servers(services: dict[str, Service]) -> None:
    assert set(services) == {*SERVERS, "mtsd"}
    assert services["mtsd"]["depends_on"] == {
        server: {"condition": "service_healthy"} for server in SERVERS
    }
    for server in SERVERS:
        check = services[server]["healthcheck"]
        assert set(check) == {"test", "interval", "timeout", "retries"}
        assert check["test"] == ["CMD", "mysqladmin", "ping", "--silent", "-h", "127.0.0.1"]
        assert re.fullmatch(r"mysql:\d+\.\d+", default(services[server]["image"]))
    # The daemon's own is the image's.
    assert "healthcheck" not in services["mtsd"]
    assert stages()[-1].values("HEALTHCHECK")


def test_what_it_mounts_is_there(composition: Composition) -> None:
    used = set()
    for name, service in composition["services"].items():
        for text in service["volumes"]:
            outside, inside, *mode = text.split(":")
            assert Path(inside).is_absolute(), text
            if outside.startswith("./"):
                assert (PROJECT / outside).is_file(), text
                assert mode == ["ro"], text
            else:
                used.add(outside)
                assert outside == name, text
                assert inside == "/var/lib/mysql"
    assert used == set(composition["volumes"])


def test_the_servers_are_open_to_this_machine_alone(services: dict[str, Service]) -> None:
    found = {name: service["ports"] for name, service in services.items() if "ports" in service}
    # Where an mtsd with the defaults of its configuration looks for them.
    of_settings = {server: FIELDS[f"{server}.port"].default for server in SERVERS}
    assert {name: list(map(default, ports)) for name, ports in found.items()} == {
        server: [f"127.0.0.1:{of_settings[server]}:3306"] for server in SERVERS
    }


def test_the_daemons_container_has_few_rights(services: dict[str, Service], loaded: Loaded) -> None:
    mtsd = services["mtsd"]
    assert mtsd["build"] == "."
    assert mtsd["read_only"] is True
    assert mtsd["cap_drop"] == ["ALL"]
    assert mtsd["security_opt"] == ["no-new-privileges:true"]
    # The one place that it may write to is the status socket's, and its user's.
    socket = loaded.settings.status.socket
    assert socket is not None
    image = stages()[-1]
    uid, _, gid = image.values("USER")[0].partition(":")
    assert mtsd["tmpfs"] == [f"{socket.parent}:uid={uid},gid={gid},mode=0700"]
    assert image.values("WORKDIR") == [str(socket.parent)]


def test_it_stops_gracefully_and_comes_back(services: dict[str, Service], loaded: Loaded) -> None:
    mtsd = services["mtsd"]
    assert mtsd["stop_signal"] == "SIGTERM"
    graceful = loaded.settings.replica.stop_timeout + SECONDS_TO_SPARE
    assert seconds(mtsd["stop_grace_period"]) >= graceful
    for service in services.values():
        assert service["restart"] == "on-failure"


def test_passwords_are_in_files_alone(
    composition: Composition, services: dict[str, Service], passwords: dict[str, str]
) -> None:
    used = {name for service in services.values() for name in service["secrets"]}
    assert used == set(composition["secrets"])
    for service in services.values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name:
                assert name.endswith("_FILE")
                assert value.removeprefix("/run/secrets/") in service["secrets"]
    assert all(passwords.values())


def test_its_configuration_meets_the_servers(
    services: dict[str, Service], passwords: dict[str, str], loaded: Loaded
) -> None:
    assert loaded.warnings == ()
    settings = loaded.settings
    ids = {settings.source.server_id}
    for server, endpoint in (("source", settings.source), ("target", settings.target)):
        service = services[server]
        assert endpoint.host == server
        assert endpoint.port == 3306
        environment = service["environment"]
        assert environment["MYSQL_USER"] == endpoint.user
        secret = environment["MYSQL_PASSWORD_FILE"].removeprefix("/run/secrets/")
        assert passwords[secret] == endpoint.password.get_secret_value()
        (option,) = service["command"]
        ids.add(int(option.removeprefix("--server-id=")))
        prepared = f"./docker/{server}.sql:/docker-entrypoint-initdb.d/{server}.sql:ro"
        assert prepared in service["volumes"]
    assert len(ids) == 3


@pytest.mark.servers
@pytest.mark.parametrize(("role", "user"), [("source", "repl"), ("target", "mtsd")])
def test_its_servers_are_prepared(role: str, user: str, loaded: Loaded) -> None:
    prepared = (PROJECT / "docker" / f"{role}.sql").read_text(encoding="utf-8")
    of_source, of_target = "\n".join(statements(loaded.settings)).split("\n\n")
    printed = of_source if role == "source" else of_target
    for line in printed.splitlines():
        statement = re.sub(r"^/\*!\d+ (.*) \*/;$", r"\1;", line)
        assert statement.startswith(("--", "/*M!")) or statement in prepared
    with Server() as server:
        # As the image does it, before it runs the file.
        server.sql(f"CREATE USER '{user}'@'%' IDENTIFIED BY 'p'")
        server.tool("mysql", stdin=prepared.encode())
        assert server.sql("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.log_bin") == [("", 1)]
        assert len(server.sql("SHOW BINARY LOGS")) == 1
        granted = str(server.sql(f"SHOW GRANTS FOR '{user}'@'%'"))
        assert ("REPLICATION SLAVE" in granted, "TRIGGER" in granted) == (
            role == "source",
            role == "target",
        )
