"""Every mistake in the settings of a profile, file by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.errors import ConfigError, Problem, StoreUnavailable
from hermes.profiles import Profile
from hermes.settings import yaml_file
from hermes.settings.layers import Layer, readers
from hermes.settings.own import own_part, unknown


def check(
    profile: Profile, *, environ: Mapping[str, str], overrides: Mapping[str, Any] | Sequence[str] = ()
) -> list[Problem]:
    """Every mistake in every layer of *profile*, those that a higher layer hides included.

    A problem that is not ``fatal`` stops no command. Raises UsageError for an override that is none.
    """
    problems: list[Problem] = []
    for read in readers(profile, environ, overrides):
        try:
            layer = read()
        except ConfigError as exc:
            problems += exc.problems
        except StoreUnavailable as exc:
            problems.append(Problem("", exc.reason, exc.path))
        else:
            problems += problems_of(layer)
    return problems + _unread_lines(profile.paths.dotenv)


def _unread_lines(path: Path) -> list[Problem]:
    from hermes import dotenv

    try:
        return dotenv.problems(path)
    except (ConfigError, StoreUnavailable):
        return []  # the layer has said so


def problems_of(layer: Layer) -> list[Problem]:
    """Every mistake in one layer, in the order of its lines."""
    from hermes.settings.convert import convert

    own = own_part(layer)
    _, mistakes = convert(own.sections)
    problems = [*own.wrong, *(own.problem(keys, what) for keys, what in mistakes), *unknown(own)]
    for key, line in yaml_file.given_twice(layer.text) if layer.text else ():
        problems.append(
            Problem(key, "this key is given twice; the last one counts", layer.path, line, fatal=False)
        )
    return sorted(problems, key=lambda problem: problem.line or 0)
