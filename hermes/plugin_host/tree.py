"""The command tree of a provider: its ``cli.py`` imported, its argparse parser built and run.

``cli.py`` is imported without the package around it: help and completion of a provider that takes a second to
import are there at once. Its relative imports work, and ``from . import name`` imports the package where *name*
is no module of it. Standard library only: child processes import this module.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

_PARENT = "_hermes_trees"


def file_of(spec: Mapping[str, Any]) -> Path | None:
    """The ``cli.py`` of the plugin of *spec* (see ``Plugin.spec``), if it has one that defines a tree.

    Nothing is run to find out. One that cannot be parsed counts: running it says what is wrong with it.
    """
    folders = dict.fromkeys(spec.get(place) for place in ("path", "root"))
    for file in (Path(folder) / "cli.py" for folder in folders if folder):
        try:
            if "register_cli" in _defined(ast.parse(file.read_bytes())):
                return file
        except FileNotFoundError:
            continue
        except (OSError, SyntaxError, ValueError):
            return file
    return None


def run(
    spec: Mapping[str, Any], argv: Sequence[str], *, prog: str, facts: Mapping[str, Any] | None = None
) -> int:
    """Run the tree of *spec* with the words *argv* and return its exit code; *prog* is how it was called.

    *facts* are attributes that the handlers find beside the arguments.
    A handler's return value is the code where it is a number. What its import or a handler raises goes through,
    except that it exits: that gives the code.
    """
    try:
        module = load(spec)
        parser = build(module, prog)
        given = parser.parse_args(list(argv), argparse.Namespace(**(facts or {})))
        handler = getattr(given, "func", None) or _command(module, spec["name"])
        if not callable(handler):
            parser.print_help(sys.stderr)
            return 2
        result = handler(given)
    except SystemExit as exc:
        return _code(exc)
    return result if isinstance(result, int) and not isinstance(result, bool) else 0


def words(
    spec: Mapping[str, Any], given: Sequence[str], incomplete: str, *, prog: str
) -> list[tuple[str, str]]:
    """What can stand after the words *given* and starts with *incomplete*, each with its help."""
    parser, expecting = _walk(build(load(spec), prog), given)
    return [(word, text) for word, text in _possible(parser, expecting) if word.startswith(incomplete)]


def load(spec: Mapping[str, Any]) -> ModuleType:
    """The ``cli.py`` of the plugin of *spec* as a module. Raises what its import raises."""
    file = file_of(spec)
    if file is None:
        raise ImportError(f"{spec['name']} has no cli.py with register_cli(subparser)")
    name = f"{_PARENT}.{''.join(c if c.isalnum() else '_' for c in str(spec['name']))}"
    for loaded in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[loaded]  # of another profile, perhaps
    sys.modules.setdefault(_PARENT, ModuleType(_PARENT)).__path__ = []
    sys.modules[name] = _Package(name, file.parent)
    return importlib.import_module(f"{name}.cli")


class _Package(ModuleType):
    """The package in a folder, whose ``__init__.py`` runs when a name is asked of it that only that has."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self.__path__ = [str(folder)]
        self.__package__ = name
        self._pending = True

    def __getattr__(self, name: str) -> Any:
        init = Path(self.__path__[0]) / "__init__.py"
        asked = not name.startswith("__") and self.__dict__.get("_pending") and init.is_file()
        if not asked or importlib.util.find_spec(f"{self.__name__}.{name}") is not None:
            raise AttributeError(f"{self.__name__} has no {name!r}")
        self._pending = False
        found = importlib.util.spec_from_file_location(self.__name__, init)
        assert found is not None
        assert found.loader is not None
        self.__file__ = str(init)
        found.loader.exec_module(self)
        return getattr(self, name)


class TreeParser(argparse.ArgumentParser):
    """What ``register_cli`` is given: a parser, and a group of commands for those who take it for one.

    Some call ``subparser.add_parser("their-name")``; if that is all they add, what they get is the tree itself.
    """

    _group: Any = None

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        """A parser for the command *name*."""
        if self._group is None:
            self._group = self.add_subparsers()
        options.setdefault("prog", f"{self.prog} {name}" if self._group.choices else self.prog)
        parser: argparse.ArgumentParser = self._group.add_parser(name, **options)
        return parser

    def tree(self) -> argparse.ArgumentParser:
        """The parser to use: the only one that was added here, or this one."""
        added = list(dict.fromkeys(self._group.choices.values())) if self._group is not None else []
        own = [action for action in self._actions if action is not self._group and action.dest != "help"]
        return added[0] if len(added) == 1 and not own else self


def build(module: ModuleType, prog: str) -> argparse.ArgumentParser:
    """The parser that the ``register_cli`` of *module* makes. Raises what it raises."""
    # the subparsers that it adds copy prog and the class from this one
    parser = TreeParser(prog=prog)
    module.register_cli(parser)
    return parser.tree()


def _command(module: ModuleType, name: str) -> Any:
    """The function that takes every command of the tree called *name*, for trees that set no ``func``."""
    return getattr(module, f"{name.replace('-', '_')}_command", None) or getattr(
        module, f"{name}_command", None
    )


def _code(exc: SystemExit) -> int:
    if exc.code is None or isinstance(exc.code, int):
        return exc.code or 0
    print(exc.code, file=sys.stderr)  # noqa: T201 - as the interpreter does
    return 1


def _defined(module: ast.Module) -> Iterator[str]:
    """The names that a module has when it is imported: its functions, what it imports, what it assigns."""
    pending: list[ast.AST] = [*module.body]
    while pending:
        match node := pending.pop():
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case _:  # an if, a try
                below = ast.iter_child_nodes(node)
                pending += [child for child in below if isinstance(child, ast.stmt | ast.ExceptHandler)]


def _walk(
    parser: argparse.ArgumentParser, given: Sequence[str]
) -> tuple[argparse.ArgumentParser, argparse.Action | None]:
    """The parser that the words *given* lead to, and the option that still waits for its value."""
    expecting: argparse.Action | None = None
    for word in given:
        if expecting is not None:
            expecting = None
            continue
        action = parser._option_string_actions.get(word)
        if action is not None:
            expecting = action if action.nargs != 0 else None
            continue
        for group in parser._actions:
            if isinstance(group, argparse._SubParsersAction) and word in group.choices:
                parser = group.choices[word]
    return parser, expecting


def _possible(
    parser: argparse.ArgumentParser, expecting: argparse.Action | None
) -> Iterator[tuple[str, str]]:
    for action in [expecting] if expecting is not None else parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            yield from ((name, helps.get(name, "")) for name in action.choices)
        elif expecting is None and action.option_strings:
            if action.help != argparse.SUPPRESS:
                yield action.option_strings[-1], action.help or ""
        else:
            yield from ((str(choice), "") for choice in action.choices or ())
