"""The form of a provider, filled in as a person would for a first try: defaults, first choices, made-up keys."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from hermes.errors import HermesError
from hermes.setup.fields import Field, fields_of
from hermes.setup.places import Place, place_of

NOBODY = "http://127.0.0.1:9"
"""Where nothing listens: what a field is given that wants an address and has no default."""
_MADE_UP = "made-up-"
_ADDRESS = ("url", "endpoint", "host", "server")


@attrs.frozen
class Filled:
    """Answers, by where they are kept."""

    dotenv: dict[str, str] = attrs.field(factory=dict)
    config: dict[str, Any] = attrs.field(factory=dict)
    """For ``memory.<name>`` in ``config.yaml``."""
    values: dict[str, Any] | None = None
    """For ``save_config``, where the provider has one."""
    secrets: tuple[str, ...] = ()
    """The keys that were made up: none of them may be seen anywhere."""
    name: str = ""
    root: str = ""
    """The folder of the check that the form was read in: defaults may name a place in it."""

    def moved_to(self, root: Path) -> Filled:
        """The same answers for a check in the folder *root*."""
        if not self.root:
            return self
        text = json.dumps(attrs.asdict(self), default=str).replace(self.root, str(root))
        fields = json.loads(text)
        return Filled(**{**fields, "secrets": tuple(fields["secrets"])})

    def write(self, root: Path) -> None:
        """Put down what a setup writes, for both profiles of a check below *root*."""
        import yaml

        for profile in ("first", "second"):
            home = root / "hermes" / "profiles" / profile
            home.mkdir(parents=True)
            if self.dotenv:
                (home / ".env").write_text("".join(f"{k}={v}\n" for k, v in self.dotenv.items()))
            settings: dict[str, Any] = {"memory": {"provider": self.name, self.name: self.config}}
            (home / "config.yaml").write_text(yaml.safe_dump(settings) if self.name else "")

    def for_child(self) -> dict[str, Any]:
        """What a step has to know."""
        return {
            "values": self.values,
            "config": self.config,
            "dotenv": self.dotenv,
            "secrets": list(self.secrets),
        }


def fill(
    name: str, facts: Mapping[str, Any], manifest: Mapping[str, Any], answers: Mapping[str, Any]
) -> Filled:
    """The form of the plugin *name*; *facts* are ``schema`` and ``keeps``, *answers* go before everything."""
    fields = [field for field in fields_of(facts.get("schema") or [])[0] if field.key]
    chosen: dict[str, Any] = {}
    for field in fields:
        if all(chosen.get(key) == value for key, value in field.when.items()):
            value = _answer(field, answers, chosen)
            if value is not None:
                chosen[field.key] = value
    keeps = bool(facts.get("keeps"))
    required = manifest.get("requires_env")
    names = [str(item) for item in required] if isinstance(required, list) else []
    dotenv = {variable: NOBODY if _wants_address(variable) else _made_up() for variable in names}
    config: dict[str, Any] = {}
    values: dict[str, Any] = {}
    kept = {"dotenv": dotenv, "config": config, "provider": values}
    for field in fields:
        if field.key in chosen and (place := _place(name, field, keeps=keeps)):
            kept[place.kind][place.name] = chosen[field.key]
    made_up = [
        value for value in (*dotenv.values(), *config.values(), *values.values()) if _is_made_up(value)
    ]
    return Filled(
        {key: str(value) for key, value in dotenv.items()},
        config,
        values if keeps else None,
        tuple(map(str, made_up)),
        name,
        str(facts.get("root") or ""),
    )


def _place(name: str, field: Field, *, keeps: bool) -> Place | None:
    """Where the answer is kept; None where it cannot be, which the check of the form tells."""
    try:
        return place_of(name, field, keeps=keeps)
    except HermesError:
        return None


def _answer(field: Field, answers: Mapping[str, Any], chosen: Mapping[str, Any]) -> Any:
    """What to answer to *field*; None to leave it empty."""
    if field.key in answers:
        return answers[field.key]
    if field.secret:
        return _made_up()
    if field.env_var and os.environ.get(field.env_var):
        return os.environ[field.env_var]
    if field.default_from:
        other, values = field.default_from
        if chosen.get(other) in values:
            return values[chosen[other]]
    if field.default not in (None, ""):
        return field.default
    return _example(field) if field.required else None


def _example(field: Field) -> Any:
    if field.choices:
        return field.choices[0]
    if field.kind == "boolean":
        return False
    if field.kind in ("integer", "number"):
        return (
            field.minimum if field.minimum is not None else field.maximum if field.maximum is not None else 1
        )
    return NOBODY if _wants_address(field.key) else "conformance"


def _wants_address(name: str) -> bool:
    return any(word in name.lower() for word in _ADDRESS)


def _made_up() -> str:
    return f"{_MADE_UP}{secrets.token_hex(12)}"


def _is_made_up(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_MADE_UP)
