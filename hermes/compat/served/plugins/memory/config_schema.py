"""How a provider describes its settings to a panel."""

from __future__ import annotations

from dataclasses import dataclass

KIND_TEXT = "text"
KIND_SELECT = "select"
KIND_SECRET = "secret"  # noqa: S105 - the kind of a field
KIND_BOOL = "bool"
KIND_NUMBER = "number"
KIND_JSON = "json"
STORAGE_FLAT_JSON = "flat_json"


@dataclass(frozen=True)
class ProviderFieldOption:
    """One choice of a ``select`` field."""

    value: str
    label: str
    description: str = ""


@dataclass(frozen=True)
class ProviderField:
    """One setting: secrets belong into ``.env`` as *env_key*, all else into the provider's own file as *key*."""

    key: str
    label: str
    kind: str = KIND_TEXT
    default: str = ""
    description: str = ""
    placeholder: str = ""
    options: tuple[ProviderFieldOption, ...] = ()
    env_key: str | None = None
    aliases: tuple[str, ...] = ()
    env_fallbacks: tuple[str, ...] = ()
    inline: bool = False
    group: str = ""
    info: str = ""
    scope: str = "host"

    @property
    def is_secret(self) -> bool:
        """Whether it must not be shown."""
        return self.kind == KIND_SECRET

    def allowed_values(self) -> set[str]:
        """What may be chosen."""
        return {option.value for option in self.options}


@dataclass(frozen=True)
class ProviderConfigSchema:
    """All settings of one provider."""

    name: str
    label: str
    storage: str = STORAGE_FLAT_JSON
    docs_url: str = ""
    fields: tuple[ProviderField, ...] = ()

    def inline_fields(self) -> tuple[ProviderField, ...]:
        """Those of the short form."""
        return tuple(one for one in self.fields if one.inline)
