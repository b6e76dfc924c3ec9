"""Importing one plugin into this process and letting it register.

A plugin in a folder becomes a package of a name of its own, made from where it lies and how old its files are:
two profiles with two versions of a plugin run their own code, and no name of the application is touched.
Standard library only: worker processes import this module.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes.memory.provider import MemoryProvider
from hermes.plugin_host.context import RegistrationContext

PARENT = "_hermes_plugins"
_DUCK = ("name", "is_available", "initialize", "get_tool_schemas")
_NOT_SOURCES = frozenset({"__pycache__", "node_modules", "site-packages"})
_importing = threading.RLock()


class LoadFailed(Exception):
    """A plugin cannot be loaded: the exception that stopped it, with the file and line where it came up."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line

    def __str__(self) -> str:
        return f"{self.message} ({self.file}:{self.line})" if self.file else self.message


def load(spec: Mapping[str, Any], ctx: RegistrationContext) -> None:
    """Import the plugin of *spec* (see ``Plugin.spec``) and let it register with *ctx*.

    It may give a ``register(ctx)``, a ``register`` that returns the provider, a provider class or object, or one
    concrete provider class and nothing else. What was registered before ``register`` raised is kept, and
    ``ctx.registered.problem`` says why it raised. Raises ``LoadFailed``.
    """
    try:
        target = import_plugin(spec)
        _register(target, spec, ctx)
    except LoadFailed:
        raise
    except (Exception, SystemExit) as exc:
        failure = _failure(exc, spec)
        if ctx.registered.memory_provider is None and ctx.registered.context_engine is None:
            raise failure from exc
        ctx.registered.problem = f"register(ctx) did not finish: {failure}"


def import_plugin(spec: Mapping[str, Any]) -> Any:
    """The module of the plugin, or what its entry point names in it. Raises whatever its import raises."""
    if spec.get("bundled"):
        return importlib.import_module(f"hermes.plugins.{spec['kind']}.{spec['name']}")
    if spec.get("entry"):
        module_name, _, attributes = str(spec["entry"]).partition(":")
        target: Any = importlib.import_module(module_name.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            target = getattr(target, attribute)
        return target
    return _package(Path(spec["path"]))


def _register(target: Any, spec: Mapping[str, Any], ctx: RegistrationContext) -> None:
    wanted = "context_engine" if spec.get("kind") == "context_engine" else "memory_provider"
    if not isinstance(target, ModuleType):
        if not _is_provider(target) and callable(target):
            target(ctx)  # the register function itself
        else:
            getattr(ctx, f"register_{wanted}")(target)
        return
    register = getattr(target, "register", None)
    offered = None
    if callable(register):
        offered = register(ctx) if _takes_an_argument(register) else register()
    if (
        wanted == "memory_provider"
        and spec.get("kind") == "memory"
        and ctx.registered.memory_provider is None
    ):
        if offered is None or not _is_provider(offered):
            offered = _the_class(target, has_register=callable(register))
        ctx.register_memory_provider(offered)


def _takes_an_argument(register: Any) -> bool:
    """Whether *register* can be given the context; some take nothing and return the provider."""
    try:
        inspect.signature(register).bind(None)
    except TypeError:
        return False
    except ValueError:  # its signature cannot be told
        return True
    return True


def _is_provider(target: Any) -> bool:
    return isinstance(target, type) or all(hasattr(target, member) for member in _DUCK)


def _the_class(module: ModuleType, *, has_register: bool) -> type[Any]:
    """The one concrete provider class in *module*. Raises ``LoadFailed`` for none and for several."""
    found = {value for value in vars(module).values() if isinstance(value, type) and _concrete(value)}
    leaves = {cls for cls in found if not any(cls is not other and issubclass(other, cls) for other in found)}
    if len(leaves) > 1:
        own = {cls for cls in leaves if cls.__module__ == module.__name__}
        leaves = own or leaves
    if len(leaves) == 1:
        return leaves.pop()
    said = "its register(ctx) registers no memory provider" if has_register else "it has no register(ctx)"
    names = ", ".join(sorted(cls.__name__ for cls in leaves))
    found_too = f"there are several provider classes ({names})" if names else "there is no provider class"
    raise LoadFailed(f"{said}, and {found_too}", str(getattr(module, "__file__", None) or ""), 1)


def _concrete(cls: type[Any]) -> bool:
    if inspect.isabstract(cls) or cls is MemoryProvider:
        return False
    return issubclass(cls, MemoryProvider) or all(hasattr(cls, member) for member in _DUCK)


# -- packages of a name of their own ---------------------------------------------------------------------


def _package(folder: Path) -> ModuleType:
    """The package in *folder*, imported under its synthetic name; the same one while its files stay as they are."""
    name = f"{PARENT}.{re.sub(r'[^0-9A-Za-z_]', '_', folder.name)}_{_fingerprint(folder)}"
    with _importing:
        if name in sys.modules:
            return sys.modules[name]
        sys.modules.setdefault(PARENT, _empty_package(PARENT))
        init = folder / "__init__.py"
        found = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(folder)])
        if found is None or found.loader is None or not init.is_file():
            raise LoadFailed("there is no __init__.py", str(folder))
        module = importlib.util.module_from_spec(found)
        sys.modules[name] = module
        try:
            found.loader.exec_module(module)
        except BaseException:
            for loaded in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
                del sys.modules[loaded]
            raise
        return module


def _empty_package(name: str) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []
    return module


def _fingerprint(folder: Path) -> str:
    """Eight characters that change with where *folder* lies and with its Python files."""
    digest = hashlib.sha256(os.fsencode(folder.absolute()))
    for place, below, files in os.walk(folder):
        below[:] = sorted(name for name in below if name not in _NOT_SOURCES and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(".py"):
                stat = (Path(place) / name).stat()
                digest.update(f"{place}/{name}:{stat.st_mtime_ns}:{stat.st_size}".encode(errors="replace"))
    return digest.hexdigest()[:8]


# -- what went wrong -------------------------------------------------------------------------------------


def _failure(exc: BaseException, spec: Mapping[str, Any]) -> LoadFailed:
    message = f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
    if isinstance(exc, SyntaxError) and exc.filename:
        return LoadFailed(f"{type(exc).__name__}: {exc.msg}", exc.filename, exc.lineno or 0)
    frames = traceback.extract_tb(exc.__traceback__)
    folder = str(spec.get("path") or "")
    own = [frame for frame in frames if folder and frame.filename.startswith(folder)]
    foreign = [frame for frame in frames if frame.filename != __file__ and not frame.filename.startswith("<")]
    for frame in (own or [f for f in foreign if os.sep + "importlib" + os.sep not in f.filename])[-1:]:
        return LoadFailed(message, frame.filename, frame.lineno or 0)
    return LoadFailed(message)
