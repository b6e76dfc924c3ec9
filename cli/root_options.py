"""The options that every command of ours takes, before the subcommand and after it.

They are parameters of each command, so that the parser itself takes them: a value that looks like one of them
is not mistaken for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperGroup, TyperOption

_SPEC: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("--profile", "-p"), {"metavar": "NAME", "help": "Profile to use."}),
    (("--target-profile",), {"metavar": "NAME", "help": "Act on this profile in place of one's own."}),
    (("--home",), {"metavar": "PATH", "help": "Root folder, in place of HERMES_HOME and ~/.hermes."}),
    (
        ("--set", "settings"),
        {"metavar": "KEY=VALUE", "multiple": True, "help": "A setting for this call only."},
    ),
    (("--json",), {"is_flag": True, "help": "Print data for programs."}),
    (("--quiet", "-q"), {"is_flag": True, "help": "Print less."}),
    (("--verbose", "-v"), {"count": True, "type": int, "help": "Print more; tracebacks too."}),
)
NAMES = frozenset(word for words, _ in _SPEC for word in words if word.startswith("-"))


def _keep(ctx: Any, param: Any, value: Any) -> None:
    """The innermost value wins, counts and ``--set`` add up, a flag stays on."""
    if value in (None, False, 0, ()):
        return
    given = ctx.find_root().ensure_object(dict)
    if param.multiple:
        given[param.name] = (*given.get(param.name, ()), *value)
    elif param.count:
        given[param.name] = given.get(param.name, 0) + value
    else:
        given[param.name] = value


def _profile_names(ctx: Any, _args: list[str], incomplete: str) -> list[str]:
    """Profiles that could be meant, for the shell's completion."""
    import os

    from hermes import profiles
    from hermes.errors import HermesError

    home = (ctx.find_root().obj or {}).get("home")
    try:
        root = profiles.find_root(os.environ, Path(home) if home else None).root
        return [p.name for p in profiles.list_profiles(root) if p.name.startswith(incomplete)]
    except HermesError:
        return []  # a home that cannot be read completes nothing; the command itself will say why


def _options(*, hidden: bool) -> list[TyperOption]:
    return [
        TyperOption(
            param_decls=list(words),
            expose_value=False,
            callback=_keep,
            hidden=hidden,
            is_eager=not hidden,  # those of the root count for its --help: it lists a provider's commands
            autocompletion=_profile_names if rest.get("metavar") == "NAME" else None,
            **rest,
        )
        for words, rest in _SPEC
    ]


def add_root_options(command: Any, *, hidden: bool = True) -> None:
    """Give *command* and every one below it the root options; a clash of names is a ``RuntimeError``."""
    for param in command.params:
        if clash := NAMES.intersection(getattr(param, "opts", ())):
            raise RuntimeError(f"{command.name}: {', '.join(sorted(clash))} is a root option")
    command.params = [*command.params, *_options(hidden=hidden)]
    if isinstance(command, TyperGroup) and hidden:
        for below in command.commands.values():
            add_root_options(below)
