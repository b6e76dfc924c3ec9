"""How many of the published memory providers load on this host, unmodified, each in a worker process.

Every package is installed from a package index into an environment of its own (kept in a cache, so that a
second run takes a minute), as people install it: by its entry points, by what its wheel puts into
``plugins/memory/``, or by linking the folder that its installer would copy. Large libraries that a provider
imports only when it is used are left out. They run without network and without programs of the system. What is
printed is which ones load, which start without settings, and why others do not.

    python benchmarks/corpus.py [--cache FOLDER] [--only NAME ...] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import attrs

CACHE = Path(os.environ.get("HERMES_TEST_CACHE") or Path.home() / ".cache" / "hermes-tests") / "corpus"
_NAMES = """
agent-memory-os==1.10.1 agentic-memory-hermes==0.1.4 apsimo-hermes==1.4.8 augmem-hermes==0.1.0
betterdb-hermes-memory==0.1.0 cognee-integration-hermes-agent==1.3.2 colony-hermes==1.2.1
context-compiler-hermes-plugin==0.3.0 formalcc-hermes-plugin==0.3.0 fragmented-memory==2.1.0
harness-memory-hermes==0.3.0 hermes-brain-memory==0.1.0 hermes-cashew==0.10.2 hermes-hy-memory==0.2.8
hermes-kiokuko==0.1.25 hermes-llmwiki==0.1.1 hermes-local-memory==0.3.1 hermes-local-rag==1.6.0
hermes-maximem-vity==1.3.0 hermes-membase==0.2.0 hermes-memory-libravdb==0.7.0 hermes-memory-pgvector==1.0.0
hermes-memoryrouter==0.1.1 hermes-memra==4.5.0 hermes-mnemostack==1.0.3 hermes-mongodb-memory==0.2.0
hermes-muninndb-plugin==0.3.0 hermes-next==0.7.1 hermes-nexusyn==1.0.0 hermes-okf==0.5.9
hermes-plugin-qdrant-memory==0.5.1 hermes-scope-recall==3.15.1 hermes-tiered-memory==1.0.2 hermes-xmemo==1.2.1
hexus==0.9.2 hologram-cognitive==0.4.0 hyatlas-memory==1.4.2 hydradb-hermes==1.0.2 keepsake-memory==1.1.1
knos-hermes==0.1.0 luminary-memory==0.3.2 memex-hermes==0.2.2 memleaf==1.0.4 memory-bridge==0.5.0
memorylake-hermes==1.1.3 mnemosyne-hermes==0.7.6 next-wiki-hermes-memory==0.3.0 nyx-memory==7.16.0
pacomind-hermes==1.8.4 plur-hermes==0.22.1 protagine-hermes==1.11.0 recall-memory-hermes==0.3.0
remnic-hermes==1.0.10 rushdb-hermes-memory==0.2.0 sibyl-memory-hermes==0.5.0 sonzai-hermes==1.0.0
tabularius==1.0.0 tibet-hermes==0.1.2 ultramemory-hermes==1.9.13 unshadow==0.4.0
yantrikdb-hermes-plugin==0.27.1
"""
PACKAGES = _NAMES.split()
HEAVY = ("cognee", "hy-memory", "kuzu", "openviking", "sentence-transformers", "torch")
"""Hundreds of megabytes, or hundreds of packages: left out, and so is what a library wants for their sake."""
_UNSHARE = shutil.which("unshare")
OFFLINE = (_UNSHARE, "--net") if _UNSHARE and os.geteuid() == 0 else ()
"""What is loaded is other people's code: where it can be, it is kept from the network."""
ALONE = ("hermes-agent", "mnemosyne-memory")
"""Installed without what they want themselves."""
LONGEST = 120
"""Seconds for all attempts with one package."""
EXPECTED = ("httpx", "requests")
"""What several import and do not ask for: their host has it."""
SHIMS = {
    "hermes-maximem-vity": "from hermes_maximem_vity.payload.provider import register",
    "hermes-okf": "from hermes_okf.memory_plugin import HermesOKFMemoryProvider",
    "memory-bridge": "from src.provider import register",
    "sibyl-memory-hermes": "from sibyl_memory_hermes._hermes_plugin.adapter import register",
}
"""What an installer puts into the home, where that is no folder of the package."""
_LIB = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_MARKS = (b"register_memory_provider", b"MemoryProvider")


@attrs.frozen
class Outcome:
    """What became of one package."""

    requirement: str
    plugin: str = ""
    route: str = ""
    loads: bool = False
    starts: bool = False
    said: str = ""
    """Why it does not load or start; what it left out."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="The load rate over published providers.")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--only", nargs="*", default=[], help="names of packages")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--try", dest="attempt", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attempt is not None:
        print(json.dumps(attempt(*options.attempt)))
        return 0
    chosen = [one for one in PACKAGES if not options.only or one.partition("==")[0] in options.only]
    outcomes = []
    for requirement in chosen:
        outcomes.append(outcome := measure(requirement, options.cache))
        if not options.json:
            show(outcome)
    loaded = sum(one.loads for one in outcomes)
    started = sum(one.starts for one in outcomes)
    if options.json:
        print(json.dumps([attrs.asdict(one) for one in outcomes], indent=2))
    else:
        print(f"\n{loaded} of {len(outcomes)} load, {started} start without settings")
    return 0


def show(outcome: Outcome) -> None:
    """One line."""
    state = "starts" if outcome.starts else "loads" if outcome.loads else "FAILS"
    print(
        f"{outcome.requirement:40} {state:7} {outcome.route:12} {outcome.plugin:18} {outcome.said}",
        flush=True,
    )


def measure(requirement: str, cache: Path) -> Outcome:
    """Install one package and try every way in which it offers itself, until one loads."""
    folder = cache / requirement.replace("==", "-")
    if not (folder / "done").exists():
        if problem := install(folder, requirement):
            return Outcome(requirement, said=f"not installed: {problem}")
        (folder / "done").touch()
    name = requirement.partition("==")[0]
    tried = run(folder, name)
    outcome = Outcome(requirement, said="offers nothing that could be loaded")
    for one in tried:
        outcome = Outcome(requirement, **one)
        if outcome.loads:
            break
    if missing := (folder / "missing.txt").read_text():
        outcome = attrs.evolve(outcome, said=f"(without {missing}) {outcome.said}".strip())
    return outcome


def run(folder: Path, name: str) -> list[dict[str, Any]]:
    """What ``attempt`` finds for the package, in its environment and with a home of its own."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HERMES")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        try:
            done = subprocess.run(
                [*OFFLINE, str(folder / "bin" / "python"), __file__, "--try", name, str(folder / _LIB)],
                env={
                    **clean,
                    "HOME": home,
                    "HERMES_HOME": f"{home}/.hermes",
                    "PATH": str(folder / "bin"),
                    "PYTHONSAFEPATH": "1",
                },
                cwd=home,
                capture_output=True,
                text=True,
                timeout=LONGEST,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [{"said": f"it takes longer than {LONGEST} seconds"}]
    if done.returncode:
        return [{"said": f"the attempt failed: {done.stderr.strip().splitlines()[-1:]}"}]
    found: list[dict[str, Any]] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


# -- in the environment of the package ----------------------------------------------------------------------


def attempt(name: str, site: str) -> list[dict[str, Any]]:
    """Each way in which the package offers a provider, and what comes of it."""
    from hermes.containers import Hermes

    home = Path(os.environ["HERMES_HOME"])
    with Hermes().open() as me:
        offered = [
            plugin.name
            for plugin in me.plugins().memory.values()
            if plugin.distribution.lower().replace("_", "-") == name and not plugin.problem
        ]
    found = [outcome("entry point", plugin) for plugin in offered]
    if shim := SHIMS.get(name):
        (home / "plugins" / name).mkdir(parents=True)
        (home / "plugins" / name / "__init__.py").write_text(f"{shim}\n")
        found.append(outcome("shim", name))
    for folder in () if any(one["loads"] for one in found) else folders(Path(site), name):
        link = home / "plugins" / folder.name.replace("_", "-").strip("-")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(folder)
        found.append(outcome("folder", link.name))
        link.unlink()
        if found[-1]["loads"]:
            break
    return found


def outcome(route: str, plugin: str) -> dict[str, Any]:
    """Load the provider in a worker, and start it for a session."""
    from hermes.containers import Hermes
    from hermes.errors import HermesError

    result: dict[str, Any] = {"plugin": plugin, "route": route, "loads": False, "starts": False, "said": ""}
    settings = [f"memory.provider={plugin}"]
    try:
        with Hermes(settings=settings).open() as me:
            provider = me.memory_provider()
            assert provider is not None
            result["loads"] = True
            manager = me.memory_manager()
            manager.initialize_all(session_id="one", platform="cli")
            seat = next((one for one in manager.status().providers if one.external), None)
            result["starts"] = seat is not None and str(seat.state) == "ready"
            result["said"] = "refused by the manager" if seat is None else seat.reason
    except HermesError as exc:
        result["said"] = exc.message
    except ExceptionGroup as exc:
        result["said"] = str(exc.exceptions[0])
    result["said"] = " ".join(str(result["said"]).split())[:200]
    return result


def folders(site: Path, name: str) -> list[Path]:
    """Folders of the package that hold a provider, the least deep first: what an installer would copy."""
    record = next(site.glob(f"{re.sub(r'[-_.]+', '_', name)}-*.dist-info/RECORD"), None)
    lines = record.read_text("utf-8").splitlines() if record else []
    inits = sorted(
        {site / line.partition(",")[0] for line in lines if line.partition(",")[0].endswith("/__init__.py")},
        key=lambda path: (len(path.parts), str(path)),
    )
    sure = [path.parent for path in inits if _MARKS[0] in path.read_bytes()]
    likely = [
        path.parent
        for path in inits
        if any(_MARKS[1] in one.read_bytes() for one in path.parent.glob("*.py"))
    ]
    return list(dict.fromkeys([*sure, *likely]))


# -- installing -----------------------------------------------------------------------------------------------


def install(folder: Path, requirement: str) -> str:
    """Make an environment with the package and the libraries that it wants; what went wrong, or nothing."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)], check=True)
    own = Path(sys.prefix) / _LIB
    (folder / _LIB / "zz_hermes.pth").write_text(f"import site; site.addsitedir({str(own)!r})\n")
    if problem := pip(folder, "--no-deps", requirement):
        return problem
    wanted = [one for one in requirements(folder / _LIB, requirement) if name_of(one) not in HEAVY]
    whole = [one for one in wanted if name_of(one) not in ALONE]
    (folder / "light.txt").write_text("".join(f"{name}<0\n" for name in HEAVY))
    if whole and pip(folder, "--constraint", str(folder / "light.txt"), *whole):
        whole = []
    missing = [name_of(one) for one in wanted if one not in whole and pip(folder, "--no-deps", one)]
    (folder / "missing.txt").write_text(" ".join(missing))
    return pip(folder, *EXPECTED)


def requirements(site: Path, requirement: str) -> list[str]:
    """What the package says that it needs here."""
    from importlib.metadata import distributions

    from packaging.requirements import Requirement

    name = requirement.partition("==")[0]
    (dist,) = [
        one for one in distributions(path=[str(site)]) if name_of(one.metadata["Name"]) == name_of(name)
    ]
    wanted = [Requirement(text) for text in dist.requires or ()]
    chosen = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    return [f"{one.name}{one.specifier}" for one in chosen]


def name_of(requirement: str) -> str:
    """The normalised name in a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()


def pip(folder: Path, *arguments: str) -> str:
    """Install into the environment; what went wrong, or nothing."""
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    done = subprocess.run(
        [*command, "--no-input", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return (errors or [f"pip ended with {done.returncode}"])[-1] if done.returncode else ""


if __name__ == "__main__":
    raise SystemExit(main())
