"""Rules of our compose file; every breach is reported in a line that names its place."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema
import yaml

from noisefloor_services.__main__ import read_arguments
from noisefloor_services.settings import REDIS_URL, TOKENS, BadSetting, Settings
from noisefloor_services.store.durability import Durability

Tree: TypeAlias = dict[str, Any]  # Any: YAML
OURS, VALKEY = "noisefloor", "valkey/valkey"
SECRETS_FOLDER = "/run/secrets/"
_EXACT = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9./_-]*):(?P<version>\d+\.\d+\.\d+)(-[a-z0-9.-]+)?"
    r"(@sha256:[0-9a-f]{64})?"
)
_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_AGREE = (
    ("ad-server", "aggregator", "worker"),
    ("model-publisher", "create-ledger", "restore-ledger"),
)
_PORTS = {"ad-server": 8080, "aggregator": 8081, "model-publisher": 8082}
"""What is reached from outside, and at which port of this machine."""

_DATA = "./data:/srv/data:ro"
"""The one folder of this machine that a service sees: tables to publish from, never written."""

_SHARED = re.compile(r"NOISEFLOOR_(DURABILITY|PARTITIONS|LEDGER.*)")


def read_compose(path: Path) -> Tree:
    """Read a compose file."""
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def official_schema() -> Tree:
    """Return the schema of the compose specification, as check-jsonschema carries it."""
    found = find_spec("check_jsonschema")
    assert found and found.submodule_search_locations, "install noisefloor[dev]"
    folder = Path(found.submodule_search_locations[0])
    text = (folder / "builtin_schemas/vendor/compose-spec.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def is_exact(image: str) -> bool:
    """Say whether an image is named by an exact version, with or without a digest."""
    return _EXACT.fullmatch(image) is not None


def size_bytes(text: str) -> int:
    """Read a size as compose and Valkey write it: 512m, 512mb, 1g."""
    number, unit = text.removesuffix("b")[:-1], text.removesuffix("b")[-1]
    return int(number) * _BYTES[unit]


def mounted(service: Tree) -> dict[str, str]:
    """Return the secrets of a service by the path that they have there."""
    listed = (
        (one, one) if isinstance(one, str) else (one["source"], one.get("target", one["source"]))
        for one in service.get("secrets", [])
    )
    return {SECRETS_FOLDER + target: source for source, target in listed}


def server_options(service: Tree) -> dict[str, str]:
    """Return the options of a Valkey server's command line."""
    words = service["command"][1:]
    return {
        name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)
    }


def is_ours(service: Tree) -> bool:
    """Say whether a service runs on our own image."""
    return str(service.get("image", "")).startswith(f"{OURS}:")


def faults(
    compose: Tree, image_settings: Mapping[str, str], version: str, secrets: set[str]
) -> list[str]:
    """Return every breach.

    Args:
        compose: The file.
        image_settings: The variables that our image sets.
        version: Of the project, which our image is named by.
        secrets: The files that make-secrets makes.
    """
    services: Tree = compose.get("services", {})
    found = [*_schema(compose), *_literals(compose), *_declared(compose, secrets)]
    found += _agreement(services)
    for name, service in services.items():
        found_here = [*_image(service, version), *_confinement(service), *_paths(service)]
        found_here += _reach(name, service, compose, image_settings)
        found_here += _dependencies(service, services)
        is_store = str(service.get("image", "")).startswith(VALKEY)
        found_here += _store(service) if is_store else _run(service, image_settings)
        found += [f"{name}: {one}" for one in found_here]
    return found


def _schema(compose: Tree) -> Iterator[str]:
    schema = official_schema()
    kind = jsonschema.validators.validator_for(schema)
    for error in kind(schema).iter_errors(compose):
        yield f"schema: {'/'.join(map(str, error.path))}: {error.message}"


def _strings(node: object) -> Iterator[str]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from (*_strings(key), *_strings(value))
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)
    elif isinstance(node, str):
        yield node


def _literals(compose: Tree) -> Iterator[str]:
    """Everything is said in the file: it takes no variable of whoever starts it."""
    for text in _strings(compose):
        if "$" in text.replace("$$", ""):
            yield f"variable: {text}"


def _declared(compose: Tree, secrets: set[str]) -> Iterator[str]:
    services = compose.get("services", {}).values()
    used = {
        "networks": {one for service in services for one in service.get("networks", [])},
        "volumes": {
            one.split(":")[0]
            for service in services
            for one in service.get("volumes", [])
            if one != _DATA
        },
        "secrets": {one for service in services for one in mounted(service).values()},
    }
    for part, names in used.items():
        listed = set(compose.get(part, {}))
        yield from (f"{part}: {one} is not declared" for one in sorted(names - listed))
        yield from (f"{part}: {one} is not used" for one in sorted(listed - names))
    for name, secret in compose.get("secrets", {}).items():
        if secret.get("file") != f"./secrets/{name}" or name not in secrets:
            yield f"secrets: {name} is not made"
    missing = secrets - set(compose.get("secrets", {}))
    yield from (f"secrets: {one} is made for nothing" for one in sorted(missing))


def _image(service: Tree, version: str) -> Iterator[str]:
    found = _EXACT.fullmatch(service.get("image", ""))
    if found is None:
        yield "image: not an exact version"
    elif is_ours(service) and found["version"] != version:
        yield f"image: not of version {version}"
    elif not is_ours(service) and found["name"] != VALKEY:
        yield "image: unknown"
    if is_ours(service) != ("build" in service):
        yield "build: ours is built, the others are not"


def _confinement(service: Tree) -> Iterator[str]:
    user = str(service.get("user", "0"))
    required = {
        "read_only": service.get("read_only") is True,
        "cap_drop": service.get("cap_drop") == ["ALL"] and not service.get("cap_add"),
        "security_opt": "no-new-privileges:true" in service.get("security_opt", []),
        "privileged": not service.get("privileged"),
        "user": re.fullmatch(r"[1-9]\d*:[1-9]\d*", user) is not None,
        "tmpfs": bool(service.get("tmpfs")),
        "init": service.get("init") is True,
        "pids_limit": 0 < service.get("pids_limit", 0) <= 1024,
        "restart": service.get("restart")
        == ("no" if service.get("profiles") else "unless-stopped"),
        "stop_grace_period": _seconds(service.get("stop_grace_period", "10s")) >= 10,
        "mem_limit": service.get("mem_limit") == ("512m" if is_ours(service) else "1g"),
        "container_name": "container_name" not in service,  # it could not be scaled
        "network_mode": "network_mode" not in service,
        "volumes": all(
            one == _DATA or re.match(r"[a-z][a-z-]*:/", one) for one in service.get("volumes", [])
        ),
    }
    yield from (f"{key}: not as it has to be" for key, is_so in required.items() if not is_so)


def _seconds(text: str) -> int:
    found = re.fullmatch(r"(\d+)s", text)
    return int(found[1]) if found else 0


def _paths(service: Tree) -> Iterator[str]:
    """Each secret that is named is there, and each that is there is named."""
    parts = [service.get(key, {}) for key in ("environment", "command", "healthcheck")]
    text = " ".join(_strings(parts))
    named = set(re.findall(rf"{SECRETS_FOLDER}[a-z.-]+", text))
    mounts = set(mounted(service))
    yield from (f"secrets: {one} is not there" for one in sorted(named - mounts))
    yield from (f"secrets: {one} is there for nothing" for one in sorted(mounts - named))


def _reach(
    name: str, service: Tree, compose: Tree, image_settings: Mapping[str, str]
) -> Iterator[str]:
    """What has an API is reached at a port of its own, and from this machine only."""
    networks = compose.get("networks", {})
    outer = [
        one for one in service.get("networks", []) if not networks.get(one, {}).get("internal")
    ]
    if not service.get("networks"):
        yield "networks: none, which is the default one"
    port = image_settings.get("NOISEFLOOR_PORT")
    required = [f"127.0.0.1:{_PORTS[name]}:{port}"] if name in _PORTS else []
    if service.get("ports", []) != required:
        yield f"ports: not {required}"
    shared = [
        one
        for other, beside in compose.get("services", {}).items()
        for one in set(outer) & set(beside.get("networks", []))
        if other != name
    ]
    yield from (f"networks: {one} is shared with another" for one in sorted(set(shared)))
    if bool(outer) != bool(required):
        yield "networks: reached from outside" if outer else "networks: not reached from outside"


def _dependencies(service: Tree, services: Tree) -> Iterator[str]:
    for other, condition in service.get("depends_on", {}).items():
        if other not in services:
            yield f"depends_on: {other} is not declared"
        elif condition.get("condition") != "service_healthy":
            yield f"depends_on: {other} may not be up"
        elif "test" not in services[other].get("healthcheck", {}):
            yield f"depends_on: {other} has no health check"
        elif not set(service.get("networks", [])) & set(services[other].get("networks", [])):
            yield f"depends_on: {other} is on no network of it"
    if is_ours(service) and not service.get("depends_on") and not _is_alone(service):
        yield "depends_on: no store"


def _is_alone(service: Tree) -> bool:
    """Say whether a service uses no store."""
    return bool(service.get("command", [])[:1] == ["make-signing-key"])


def _store(service: Tree) -> Iterator[str]:
    """A store keeps what it acknowledges, evicts nothing, and is closed to strangers."""
    options = server_options(service)
    required = {key: value.strip('"') for key, value in Durability.DISK.server_settings.items()}
    required |= {"maxmemory-policy": "noeviction", "aclfile": f"{SECRETS_FOLDER}users.acl"}
    for key, value in required.items():
        if options.get(key) != value:
            yield f"command: --{key} is not {value}"
    if 2 * size_bytes(options.get("maxmemory", "99g")) > size_bytes(
        service.get("mem_limit", "1k")
    ):
        yield "command: --maxmemory is more than half of mem_limit"
    if not any(one.endswith(f":{options.get('dir')}") for one in service.get("volumes", [])):
        yield "command: --dir is on no volume"
    if "test" not in service.get("healthcheck", {}):
        yield "healthcheck: none"


def _run(service: Tree, image_settings: Mapping[str, str]) -> Iterator[str]:
    """Our own services get arguments that they know, and settings that they accept."""
    try:
        given = read_arguments(service.get("command", []))
    except SystemExit:
        yield "command: is not known"
        return
    is_disabled = service.get("healthcheck") == {"disable": True}
    if given.name not in _PORTS and not is_disabled:
        yield "healthcheck: it has no API that the image's could ask"
    variables = {**image_settings, **service.get("environment", {})}
    files = {f"{REDIS_URL}_FILE", f"{TOKENS}_FILE"}
    try:
        Settings.read({key: str(value) for key, value in variables.items() if key not in files})
    except BadSetting as error:
        yield f"environment: {error}"
    if f"{REDIS_URL}_FILE" not in variables and not _is_alone(service):
        yield "environment: no address of a store"


def _agreement(services: Tree) -> Iterator[str]:
    """Services that share a setting have the same value."""
    for names in _AGREE:
        settings = [
            {
                key: value
                for key, value in services.get(name, {}).get("environment", {}).items()
                if _SHARED.fullmatch(key)
            }
            for name in names
        ]
        if any(one != settings[0] for one in settings):
            yield f"{', '.join(names)}: have different values"
