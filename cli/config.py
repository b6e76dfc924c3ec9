"""``hermes config``: what the settings are, where each comes from, and changing them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hermes.cli.lazy import lazy_app
from hermes.cli.output import emit, note, write
from hermes.cli.state import State, current
from hermes.errors import ConfigError, HermesError, NotFound, Problem, StaleActiveProfile, UsageError

if TYPE_CHECKING:
    from hermes.profiles import Profile
    from hermes.settings import Layer, Settings

app = lazy_app({}, "Settings: show, get, set, check, and where each comes from.")

Key = Annotated[str, typer.Argument(metavar="KEY", help="Dotted, for example memory.provider.")]
Keys = tuple[str, ...]


@app.command("show")
def show(
    ctx: typer.Context,
    origin: Annotated[bool, typer.Option("--origin", help="Say for each value which layer set it.")] = False,
) -> None:
    """Show every setting, all layers merged; secrets as ***."""
    from hermes.settings import active_provider
    from hermes.settings.masking import masked

    state = current(ctx)
    profile, layers, settings = _open(state)
    shown = masked(settings.merged)
    shown.setdefault("memory", {})["provider"] = active_provider(settings) or "none"
    if settings.model.api_key:
        shown.setdefault("model", {})["api_key"] = masked(settings.model.api_key)
    data: dict[str, Any] = {"profile": profile.name, "settings": _jsonable(shown)}
    if not origin:
        emit(state, data, lambda: _yaml(shown))
        return
    origins = {_dotted(keys): _origin(layers, keys) for keys, _ in _leaves(shown)}
    data["origin"] = origins
    emit(state, data, lambda: "\n".join(_with_origins(shown, origins)))


@app.command("get")
def get(ctx: typer.Context, key: Key) -> None:
    """Print one setting as it is in force; a secret as ***."""
    from hermes.settings.masking import is_secret_key, masked

    state = current(ctx)
    _, layers, settings = _open(state)
    keys = _keys(key)
    value = masked(_effective(settings, keys), secret=any(map(is_secret_key, keys)))
    data = {"key": key, "value": _jsonable(value), "origin": _origin(layers, keys)}
    emit(state, data, lambda: value if isinstance(value, str) else _yaml(value))


@app.command("set")
def set_(ctx: typer.Context, key: Key, value: Annotated[str, typer.Argument(metavar="VALUE")]) -> None:
    """Set one value in the profile's config.yaml; everything else in the file stays as it is.

    A value that starts with - stands after --. The key of a model's endpoint goes to .env, as a secret.
    """
    from hermes.settings import set_value
    from hermes.settings.masking import is_secret_key

    state = current(ctx)
    profile = state.profile_ref()
    keys = _keys(key)
    if any(map(is_secret_key, keys)):
        _set_secret(state, profile, keys, value)
        return
    typed = _typed(profile, keys, value)
    done = set_value(profile, keys, typed)
    data = {"key": key, "value": typed, "path": str(done.path), "changed": done.changed}
    emit(state, data, "" if state.quiet else f"{key}: {_inline(typed)}  ({done.path})")
    _say_what_is_odd(state, keys, typed)


@app.command("unset")
def unset(ctx: typer.Context, key: Key) -> None:
    """Remove one key from the profile's config.yaml."""
    from hermes.settings import unset_value

    state = current(ctx)
    profile = state.profile_ref()
    done = unset_value(profile, _keys(key))
    if not done.changed:
        raise NotFound(f"{key} is not set in {done.path}", next_step="hermes config show --origin")
    data = {"key": key, "path": str(done.path), "changed": True}
    emit(state, data, "" if state.quiet else f"{key} removed  ({done.path})")
    _say_who_overrides(state, _keys(key))


@app.command("edit")
def edit(ctx: typer.Context) -> None:
    """Open config.yaml in your editor; what you write takes its place only if it has no mistake."""
    from hermes.settings.writing import content_of, replace

    state = current(ctx)
    profile = state.profile_ref()
    path = profile.paths.config
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "an editor needs a terminal", next_step=f"hermes config set KEY VALUE, or change {path} itself"
        )
    old = content_of(profile)
    copy = Path(tempfile.mkdtemp(prefix="hermes-")) / path.name
    copy.touch(0o600)
    copy.write_bytes(old)
    while True:
        _run_editor(copy)
        new = copy.read_bytes()
        if new == old:
            break
        try:
            for problem in replace(profile, old, new):
                note(state, f"hermes: {problem}")
        except ConfigError as exc:
            write("\n".join(str(problem._replace(path=copy)) for problem in exc.problems), sys.stderr)
            if not _again():
                raise HermesError(
                    f"{path} stays as it is", next_step=f"what you wrote is in {copy}"
                ) from None
        except HermesError as exc:
            exc.next_step = f"what you wrote is in {copy}"
            raise
        else:
            break
    shutil.rmtree(copy.parent)
    emit(
        state, {"path": str(path), "changed": new != old}, str(path) if new != old else "nothing was changed"
    )


@app.command("path")
def path(ctx: typer.Context) -> None:
    """Print where the profile's config.yaml is, or would be."""
    state = current(ctx)
    try:
        file = state.profile_ref().paths.config
    except StaleActiveProfile as exc:
        note(state, f"hermes: {exc} ({exc.next_step})")
        file = exc.marker.parent / "profiles" / exc.name / "config.yaml"
    emit(state, {"path": str(file), "exists": file.exists()}, str(file))


@app.command("check")
def check_(ctx: typer.Context) -> None:
    """Report every mistake in the settings, file by file; exit 78 if there is one."""
    from hermes.settings import check

    state = current(ctx)
    profile = state.profile_ref()
    problems = check(profile, environ=state.hermes().environ, overrides=state.settings)
    data = {"profile": profile.name, "problems": [_problem(problem) for problem in problems]}
    emit(
        state,
        data,
        lambda: "\n".join(map(str, problems)) or f"no mistakes in the settings of {profile.name!r}",
    )
    if problems:
        raise typer.Exit(ConfigError.exit_code)


def _open(state: State) -> tuple[Profile, Sequence[Layer], Settings]:
    from hermes.settings import layers_of
    from hermes.settings.loading import settings_of

    profile = state.profile_ref()
    layers = layers_of(profile, environ=state.hermes().environ, overrides=state.settings)
    return profile, layers, settings_of(profile, layers)


def _keys(key: str) -> Keys:
    keys = tuple(key.split("."))
    if not all(keys):
        raise UsageError(f"{key!r} is no key", next_step="for example: hermes config get memory.provider")
    return keys


def _effective(settings: Settings, keys: Keys) -> Any:
    """The value in force: what the layers say, else what the key is without them."""
    from hermes.settings import active_provider
    from hermes.settings.hints import did_you_mean
    from hermes.settings.layers import walk
    from hermes.settings.schema import OWN

    if keys == ("memory", "provider"):
        return active_provider(settings) or "none"
    try:
        return walk(settings.merged, keys)
    except KeyError:
        pass
    typed: Any = settings if keys[0] in OWN else None
    for key in keys:
        typed = getattr(typed, key, None)
    if typed is None or callable(typed):
        known = [_dotted(path) for path, _ in _leaves(settings.merged)]
        hint = did_you_mean(_dotted(keys), known, likeness=0.85).strip(" ()")
        raise NotFound(f"{_dotted(keys)} is not set", next_step=hint or "hermes config show")
    return typed


def _typed(profile: Profile, keys: Keys, text: str) -> Any:
    """*text* as the type that the key declares; elsewhere a number or a switch where it plainly is one."""
    from hermes.settings.convert import ExpectedError, convert_text
    from hermes.settings.layers import file_layer, walk

    try:
        return convert_text(keys, text)
    except ExpectedError as exc:
        raise ConfigError([Problem(_dotted(keys), str(exc))], next_step="nothing was changed") from None
    except KeyError:
        layer = file_layer("profile", profile.paths.config)
    try:
        if layer and isinstance(walk(layer.data, keys), str):
            return text  # the file has a text there: it stays one, 1.10 is not 1.1
    except KeyError:
        pass
    return _plain_value(text)


def _plain_value(text: str) -> Any:
    import json

    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float | list) else text


def _set_secret(state: State, profile: Profile, keys: Keys, value: str) -> None:
    from hermes import dotenv
    from hermes.secret import MASK
    from hermes.settings.layers import variable

    path = profile.paths.dotenv
    if keys != ("model", "api_key"):
        provider = keys[0] == "memory" and len(keys) > 2
        name = "_".join(keys[1:] if provider else keys).upper().replace("-", "_")
        raise UsageError(
            f"{_dotted(keys)} looks like a secret, and secrets do not stand in config.yaml",
            next_step=f"write {name}=... into {path}",
        )
    dotenv.set_values(path, {variable(keys): value})
    data = {"key": _dotted(keys), "value": MASK, "path": str(path), "changed": True}
    emit(state, data, "" if state.quiet else f"{_dotted(keys)}: {MASK}  ({path})")


def _say_what_is_odd(state: State, keys: Keys, value: Any) -> None:
    if keys == ("memory", "provider") and value and str(value).lower() not in {"none", "builtin"}:
        from hermes.plugin_host import Catalog

        known = sorted(Catalog(state.profile_ref().paths).memory)
        if value not in known:
            note(state, f"hermes: no plugin called {value!r} is installed (there are: {', '.join(known)})")
    _say_who_overrides(state, keys)


def _say_who_overrides(state: State, keys: Keys) -> None:
    """A value that a higher layer has too is not the one in force."""
    from hermes.settings import layers_of, origin

    layers = layers_of(state.profile_ref(), environ=state.hermes().environ)
    if (said := origin(layers, keys)) and said[0].kind in ("local", "dotenv", "environment"):
        note(state, f"hermes: {said[0]} says {_dotted(keys)} too, and comes first")


def _run_editor(copy: Path) -> None:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ("notepad" if os.name == "nt" else "vi")
    words = shlex.split(chosen, posix=os.name != "nt")
    if not words or shutil.which(words[0]) is None:
        raise UsageError(f"there is no editor {chosen!r}", next_step="set EDITOR to the one you use")
    code = subprocess.run([*words, str(copy)], check=False).returncode
    if code:
        raise HermesError(
            f"{words[0]} ended with {code}", next_step=f"nothing was changed; your copy is {copy}"
        )


def _again() -> bool:
    write("Edit again? [Y/n]", sys.stderr)
    return sys.stdin.readline().strip().lower() in {"", "y", "yes"}


def _origin(layers: Sequence[Layer], keys: Keys) -> dict[str, Any] | None:
    from hermes.settings import origin

    said = origin(layers, keys)
    return {"kind": said[0].kind, "source": said[0].source, "line": said[0].line} if said else None


def _leaves(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, (*above, key))
    elif above:
        yield above, value


def _with_origins(shown: Any, origins: Mapping[str, Mapping[str, Any] | None]) -> Iterator[str]:
    for keys, value in _leaves(shown):
        said = origins[_dotted(keys)]
        where = (
            "" if said is None else f"  ({said['source']}{':' + str(said['line']) if said['line'] else ''})"
        )
        yield f"{_dotted(keys)}: {_inline(value)}{where}"


def _problem(problem: Problem) -> dict[str, Any]:
    return {**problem._asdict(), "path": str(problem.path) if problem.path else None}


def _dotted(keys: Sequence[Any]) -> str:
    return ".".join(map(str, keys))


def _jsonable(value: Any) -> Any:
    """*value* with texts as keys: JSON has no other, and YAML has."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    return [_jsonable(item) for item in value] if isinstance(value, list | tuple) else value


def _inline(value: Any) -> str:
    import yaml

    shown = value if isinstance(value, str) and value else None
    return shown or yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("...\n").strip()


def _yaml(value: Any) -> str:
    import yaml

    plain = list(value) if isinstance(value, tuple) else value
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True).removesuffix("...\n").rstrip()
