"""``hermes <provider> …``: the command tree of the memory provider that the profile acted on uses.

The tree is the provider's own, built with argparse (see ``hermes.plugin_host.tree``). Of its words, only
``--target-profile`` is ours. No profile is opened to find out whose a word is.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import attrs
import typer
from typer.core import TyperCommand

from hermes.cli.state import State, current
from hermes.errors import HermesError, ProviderNotInUse, ProviderUnavailable, UsageError

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.plugin_host import Plugin
    from hermes.profiles import Profile

TARGET = "--target-profile"


def mounted(ctx: Any, args: Sequence[str], known: Iterable[str]) -> tuple[ProviderTree | None, list[str]]:
    """The tree that the first of *args* means, and *args* without what is taken out of them.

    None where the word means none; *known* are the words of ours that it may be a slip of. Raises
    ``ProviderNotInUse`` for an installed provider that is not the one in use, and what finding the profile
    raises.
    """
    word = args[0]
    try:
        rest, target = without_target(args[1:])
        if target is not None:
            ctx.find_root().ensure_object(dict)["target_profile"] = target
        state = current(ctx)
        profile = state.profile_ref()
        name = in_use(state, profile)
    except HermesError:
        if ctx.resilient_parsing or difflib.get_close_matches(word, known):
            return None, list(args)  # a slip of one of our words, most likely: that is what is to be said
        raise
    try:
        tree = _tree(state, profile, name, word, rest)
    except HermesError:
        if ctx.resilient_parsing:
            return None, list(args)
        raise
    return (tree, [word, *rest]) if tree else (None, list(args))


def listed(ctx: Any) -> TyperCommand | None:
    """The tree of the provider in use, for lists of commands; None where it has none, or nothing can be told."""
    state = current(ctx)
    try:
        profile = state.profile_ref()
        name = in_use(state, profile)
        plugin = _find(state, profile, name) if name else None
    except HermesError:
        return None  # a list of commands is no place to say so; the commands do
    return ProviderTree(state, plugin) if plugin and has_tree(plugin) else None


def without_target(words: Sequence[str]) -> tuple[list[str], str | None]:
    """*words* without ``--target-profile NAME``, which is looked for up to ``--``, and NAME.

    Raises ``UsageError`` where it has no name, or stands there twice.
    """
    rest, names = [], []
    pending = iter(words)
    for word in pending:
        if word == "--":
            rest += [word, *pending]
        elif word == TARGET or word.startswith(f"{TARGET}="):
            names.append(word[len(TARGET) + 1 :] if "=" in word else next(pending, ""))
        else:
            rest.append(word)
    if len(names) > 1:
        raise UsageError(f"{TARGET} is given twice", next_step="keep one")
    if names and (not names[0] or names[0].startswith("-")):
        raise UsageError(f"{TARGET} requires the name of a profile", next_step="hermes profile list")
    return rest, names[0] if names else None


def in_use(state: State, profile: Profile) -> str | None:
    """The memory provider that *profile* uses, told from the layers of its settings alone.

    Raises ``ConfigError`` for settings that cannot be used.
    """
    from hermes.settings import Settings, active_provider, layers_of, load
    from hermes.settings.schema import MemorySettings

    environ = state.hermes().environ
    layers = layers_of(profile, environ=environ, overrides=state.settings)
    name = _said(layers, "memory.provider")
    if name is not None and not isinstance(name, str):
        return active_provider(load(profile, environ=environ, overrides=state.settings))
    configured = any(layer.kind == "profile" for layer in layers)
    return active_provider(Settings(profile, MemorySettings(provider=name), configured=configured))


def has_tree(plugin: Plugin) -> bool:
    """Whether *plugin* has commands of its own."""
    from hermes.plugin_host import tree

    return tree.file_of(plugin.spec()) is not None


def _said(layers: Any, key: str) -> Any:
    from hermes.settings import origin

    said = origin(layers, key)
    return said[0].value if said else None


def _find(state: State, profile: Profile, name: str) -> Plugin:
    from hermes.plugin_host import Catalog
    from hermes.settings import layers_of

    layers = layers_of(profile, environ=state.hermes().environ, overrides=state.settings)
    off = _said(layers, "plugins.disabled") or ()
    names = [one.strip() for one in off.split(",")] if isinstance(off, str) else list(off)
    return Catalog(paths=profile.paths, disabled=names).find(name)


def _tree(
    state: State, profile: Profile, name: str | None, word: str, rest: Sequence[str]
) -> ProviderTree | None:
    try:
        plugin = _find(state, profile, word)
    except ProviderUnavailable:
        if word == name:
            raise
        return None
    if word != name and plugin.kind == "memory":
        raise ProviderNotInUse(word, name, next_step=_with_set(state, word, rest))
    if word != name:
        return None
    if not has_tree(plugin):
        raise UsageError(
            f"the memory provider {word!r} has no commands of its own", next_step="hermes --help"
        )
    return ProviderTree(state, plugin)


def _with_set(state: State, word: str, rest: Sequence[str]) -> str:
    """The command that was meant, for a provider that is not in use."""
    words = ["hermes"]
    for option, value in (("-p", state.profile), (TARGET, state.target_profile), ("--home", state.home)):
        words += [option, str(value)] if value else []
    return shlex.join([*words, "--set", f"memory.provider={word}", word, *rest])


class ProviderTree(TyperCommand):
    """The commands of *plugin*. Every word after its name goes to its own parser, ``--`` and ``--help`` too."""

    def __init__(self, state: State, plugin: Plugin) -> None:
        super().__init__(
            plugin.name,
            help=plugin.manifest.description or f"Commands of {plugin.name}.",
            add_help_option=False,
        )
        self._state = state
        self._plugin = plugin

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Leave *args* as they are."""
        ctx.args = args
        return args

    def invoke(self, ctx: Any) -> None:
        """Run the tree for the profile acted on and exit with its code."""
        raise typer.Exit(self._run(ctx.args))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """What the tree offers after the words that are there; nothing where it cannot be asked."""
        from typer.core import CompletionItem  # type: ignore[attr-defined]  # it is re-exported without being said

        try:
            found = self._words(ctx.args, incomplete)
        except Exception:  # noqa: BLE001 - a line that is being typed is no place for what a plugin raises
            return []
        return [CompletionItem(word, help=text or None) for word, text in found]

    @property
    def _prog(self) -> str:
        return f"hermes {self._plugin.name}"

    def _run(self, words: Sequence[str]) -> int:
        from hermes.plugin_host import tree

        if self._plugin.source == "bundled":
            with self._environment():
                return tree.run(self._plugin.spec(), words, prog=self._prog, facts=self._facts())
        from hermes.plugin_host.worker.foreground import run_tree

        with self._state.open() as me:
            return run_tree(self._plugin.spec(), words, prog=self._prog, **in_child(me, self._plugin))

    def _words(self, given: Sequence[str], incomplete: str) -> list[tuple[str, str]]:
        from hermes.plugin_host import tree

        if self._plugin.source == "bundled":
            with self._environment():
                return tree.words(self._plugin.spec(), given, incomplete, prog=self._prog)
        from hermes.plugin_host.worker.foreground import words_of_tree

        with attrs.evolve(self._state, quiet=True).open() as me:
            return words_of_tree(
                self._plugin.spec(), given, incomplete, prog=self._prog, **in_child(me, self._plugin)
            )

    def _facts(self) -> dict[str, Any]:
        """What the handlers of a bundled plugin are told of the profile acted on, and of the root options."""
        from hermes.secrets import Secrets
        from hermes.settings import load

        state, profile = self._state, self._state.profile_ref()
        environ = state.hermes().environ
        settings = load(profile, environ=environ, overrides=state.settings)

        def secret(name: str) -> str | None:
            found = Secrets.of(profile.paths.dotenv, environ).get(name)
            return found.reveal() if found else None

        return {
            "hermes_profile": profile,
            "hermes_config": settings.merged,
            "hermes_secret": secret,
            "hermes_json": state.json,
        }

    def _environment(self) -> AbstractContextManager[object]:
        """What a plugin in a process of its own would find in its environment."""
        from hermes import dotenv
        from hermes.overlay import EnvironmentLease

        profile = self._state.profile_ref()
        return EnvironmentLease(profile.name, profile.home, dotenv.read(profile.paths.dotenv))


def in_child(me: OpenProfile, plugin: Plugin) -> dict[str, Any]:
    """The environment and the host of a child that runs *plugin* with the terminal."""
    from hermes.compat.profile_host import ProfileHost
    from hermes.plugin_host.worker.opening import environment, private_home_of

    settings, secrets = me.settings(), me.secrets()
    home = settings.profile.home
    private = settings.plugins.by_name.get(plugin.name, {}).get("private_home", settings.plugins.private_home)
    variables = environment(
        settings.profile.name,
        home,
        secrets.dotenv,
        secrets.environ,
        private_home=private_home_of(home, plugin.name) if private is True else None,
        terminal=True,
    )
    return {"environment": variables, "host": ProfileHost(me)}
