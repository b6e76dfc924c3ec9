"""That ``plugin.yaml`` and the README say what a person has to know."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from hermes.memory.schemas import usable_tools
from hermes.plugin_host.looking import leaves_device
from hermes.plugin_host.manifest import FILE, read
from hermes.testing.conformance.bench import Bench
from hermes.testing.conformance.findings import Where

README = "README.md"
_LISTS = (
    "hooks",
    "pip_dependencies",
    "external_dependencies",
    "requires_env",
    "provides_tools",
    "provides_hooks",
)
_KEYS = ("name", "version", "description", "kind", "author", "license", "homepage", *_LISTS)
_LISTED = "hermes plugins list and show read it without running the plugin."
_NETWORK = frozenset(
    {
        *("aiohttp", "anthropic", "asyncpg", "boto3", "grpc", "http.client", "httpx", "openai", "psycopg"),
        *("psycopg2", "pymongo", "redis", "requests", "socket", "urllib.request", "urllib3", "websockets"),
    }
)
"""What a provider imports that talks over a network."""
_PARTS = re.compile(
    r"\bturns?\b|messages?|conversation|\busers?\b|assistant|\btools?\b|quer(y|ies)|\bsaid\b"
    r"|消息|对话|用户|助手|工具|轮次",
    re.IGNORECASE,
)


def manifest(bench: Bench) -> None:
    """The keys that lists show are there and can be used."""
    file = bench.file(FILE)
    found = read(file.parent)
    if found.problem:
        bench.error(
            found.problem,
            why=_LISTED,
            mend="write name, version, description and hooks into it",
            where=Where(str(file), _line_in(found.problem)),
        )
        return
    name = str(bench.job.spec["name"])
    for key in ("name", "version", "description"):
        if not getattr(found, key):
            bench.error(
                f"{FILE} has no {key}", why=_LISTED, mend=f"add {key}: ...", where=Where(str(file), 1)
            )
    if found.name and found.name != name:
        bench.warning(
            f"{FILE} says the name is {found.name!r}, and it is chosen as {name!r}",
            why="memory.provider takes the name of the folder or the entry point; two names confuse people.",
            mend="use one name for both",
            where=_key(bench, file, "name"),
        )
    if found.version and not _is_version(found.version):
        bench.warning(
            f"the version {found.version!r} is none",
            why="What is newer cannot be told.",
            mend="count as 1.0.0 does",
            where=_key(bench, file, "version"),
        )
    for key, problem in _wrong(found.as_dict(), bench.lines(file)):
        bench.error(problem, why=_LISTED, mend=f"see {key} in the guide", where=_key(bench, file, key))
    for key in found.extra:
        near = difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.8)
        if key not in _KEYS and near:
            bench.warning(
                f"{FILE} has a key {key!r} that nothing reads",
                why=_LISTED,
                mend=f"did you mean {near[0]}?",
                where=_key(bench, file, key),
            )


def _wrong(data: Mapping[str, Any], lines: list[str]) -> Iterator[tuple[str, str]]:
    for key in _LISTS:
        if key in data and not isinstance(data[key], list):
            yield key, f"{key} in {FILE} is no list"
    if "hooks" not in data and any(re.match(r"hooks:\s*[^\s\[#]", line) for line in lines):
        yield "hooks", f"hooks in {FILE} is no list"
    for item in _items(data, "pip_dependencies"):
        if not _is_requirement(str(item)):
            yield "pip_dependencies", f"pip_dependencies has {str(item)!r}, which pip cannot install"
    for item in _items(data, "external_dependencies"):
        if not isinstance(item, Mapping) or not item.get("name") or not item.get("check"):
            yield "external_dependencies", f"external_dependencies has {item!r}, without a name or a check"


def readme(bench: Bench) -> None:
    """It is there, names what a person meets, and says of a provider with a service what leaves the device."""
    file = bench.file(README)
    source = file if file.is_file() else _described(bench, file)
    text = "\n".join(bench.lines(source))
    if len(text.split()) + len(re.findall(r"[\u4e00-\u9fff]", text)) < 20:
        bench.error(
            f"{README} is missing or nearly empty",
            why="It is the first thing that a person reads, often before they install anything.",
            mend="say what it does, how it is set up, and what its tools are for",
            where=Where(str(file)),
        )
        return
    for what, names in (("fields of the setup", _fields(bench)), ("tools", _tools(bench))):
        if missing := [shown for shown, *others in names if not any(n in text for n in (shown, *others))]:
            bench.warning(
                f"{README} does not mention the {what} {', '.join(missing)}",
                why="A person who is asked for something looks there for what it is.",
                mend="give each a line",
                where=Where(str(file)),
            )
    if bench.job.filled["secrets"]:
        _leaving(bench, file, source, "it asks for a key", bench.error)
    elif used := _uses_network(bench):
        _leaving(bench, file, source, f"it imports {used}", bench.warning)


def _described(bench: Bench, file: Path) -> Path:
    """The description of the package, as a file; *file* where there is no package."""
    if not bench.job.distribution:
        return file
    from importlib.metadata import metadata

    copy = Path(bench.job.root, README)
    copy.write_text(str(metadata(bench.job.distribution).json.get("description", "")), encoding="utf-8")
    return copy


def _leaving(bench: Bench, file: Path, source: Path, sign: str, say: Callable[..., None]) -> None:
    """*source* is the text of the README, *file* where a person finds it; *sign* tells of a service."""
    said = leaves_device(source.parent, bench.job.manifest)
    if not _PARTS.search(said):
        say(
            f"{README} does not say which parts of a turn leave the device ({sign})",
            why="Turns hold file paths, command output and private words: people decide by it whether to use it.",
            mend='add a section "What leaves this device": what is sent of what was said, and of tool calls',
            where=Where(str(file)),
        )
        return
    if bench.seat().members.accepts("sync_turn", "messages") and not re.search(
        r"\btools?\b|工具", said, re.I
    ):
        first = said.splitlines()[0]
        bench.warning(
            f"{README} does not say whether tool calls and tool results leave the device",
            why="sync_turn takes messages, which hold them: file paths, command output, workspace data.",
            mend="say it in the same section, or do not take messages",
            where=bench.line_of(file, lambda line: line.strip() and line.strip() in first),
        )


def _fields(bench: Bench) -> list[tuple[str, ...]]:
    form = bench.answer(bench.seat(), "get_config_schema")
    items = [item for item in form or () if isinstance(item, Mapping) and item.get("key")]
    return [tuple(str(item[k]) for k in ("key", "env_var") if item.get(k)) for item in items]


def _tools(bench: Bench) -> list[tuple[str, ...]]:
    return [(name,) for name in usable_tools(bench.answer(bench.seat(), "get_tool_schemas"))[0]]


def _uses_network(bench: Bench) -> str:
    """The module for talking over a network that the plugin's own code imports; empty for none."""
    folder = bench.job.spec.get("path") or bench.job.folder
    for path in sorted(Path(folder).rglob("*.py")) if folder else ():
        if {"tests", "test", "node_modules", "site-packages"} & set(path.relative_to(folder).parts):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        for name in _imported(tree):
            if name in _NETWORK or name.partition(".")[0] in _NETWORK:
                return name
    return ""


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _key(bench: Bench, file: Path, key: str) -> Where:
    return bench.line_of(file, re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*:").match)


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def _items(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _line_in(problem: str) -> int:
    found = re.search(r"\(line (\d+)\)", problem)
    return int(found[1]) if found else 0
