"""Answers that are given with the command, for where nobody is there to be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hermes.errors import UsageError
from hermes.setup.fields import Field


def answers(
    fields: Iterable[str], secrets: Iterable[str], environ: Mapping[str, str], stdin: Callable[[], str]
) -> dict[str, str]:
    """The answers by key: *fields* as ``KEY=VALUE``, *secrets* as ``KEY=SOURCE``.

    A source is ``@FILE``, ``-`` for what *stdin* gives, or ``env:NAME``; a line end at its end is no part of the
    secret. Raises ``UsageError``, which never shows a value.
    """
    given = dict(_pair("--field", text) for text in fields)
    for key, source in (_pair("--secret", text) for text in secrets):
        if key in given:
            raise UsageError(f"{key} is given twice", next_step="keep one")
        given[key] = _secret(key, source, environ, stdin).removesuffix("\n").removesuffix("\r")
        if not given[key]:
            raise UsageError(f"the source of {key} is empty", next_step="nothing was saved")
    return given


def check_kinds(fields: Iterable[Field], by_field: Iterable[str], by_secret: Iterable[str]) -> None:
    """Raises ``UsageError`` where a secret stands among *by_field*, or another field among *by_secret*."""
    secret = {field.key: field.secret for field in fields}
    for key in _keys(by_field):
        if secret.get(key):
            raise UsageError(
                f"{key} is a secret, and others can read what stands in a command",
                next_step=f"--secret {key}=@FILE, --secret {key}=- or --secret {key}=env:NAME",
            )
    for key in _keys(by_secret):
        if not secret.get(key, True):
            raise UsageError(f"{key} is no secret", next_step=f"--field {key}=VALUE")


def _keys(given: Iterable[str]) -> list[str]:
    return [text.partition("=")[0] for text in given]


def _pair(option: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"{option} needs KEY=VALUE", next_step="hermes memory setup --help")
    return key, value


def _secret(key: str, source: str, environ: Mapping[str, str], stdin: Callable[[], str]) -> str:
    if source == "-":
        return stdin()
    kind, name = source[:1], source[1:]
    if source.startswith("env:"):
        if source[4:] not in environ:
            raise UsageError(f"{key}: there is no variable {source[4:]}", next_step="set it and export it")
        return environ[source[4:]]
    if kind != "@":
        raise UsageError(
            f"{key}: a secret is not written into the command, where others can read it",
            next_step=f"--secret {key}=@FILE, --secret {key}=- or --secret {key}=env:NAME",
        )
    try:
        return Path(name).expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{key}: {name} is not UTF-8 text", next_step="nothing was saved") from None
    except OSError as exc:
        raise UsageError(f"{key}: {name}: {exc.strerror}", next_step="nothing was saved") from None
