"""The host that plugins ask: one open profile. This module looks up to settings and containers."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes import dotenv, profiles
from hermes.secrets import Secrets
from hermes.settings import change

if TYPE_CHECKING:
    from hermes.containers import OpenProfile
    from hermes.plugin_host.host import Keys
    from hermes.profiles import Profile

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


class ProfileHost:
    """``Host`` over *me*. Settings and secrets are read anew each time: a plugin may have just written them."""

    def __init__(self, me: OpenProfile) -> None:
        self._me = me

    @property
    def _profile(self) -> Profile:
        return self._me.settings().profile

    def home(self) -> str:
        """The home of the profile."""
        return str(self._profile.home)

    def profile_name(self) -> str:
        """The name of the profile."""
        return self._profile.name

    def root(self) -> str:
        """The root that the profiles share."""
        return str(self._profile.root)

    def list_profiles(self) -> list[str]:
        """The names of all profiles below the root. Raises HomeUnusable."""
        return [profile.name for profile in profiles.list_profiles(self._profile.root)]

    def load_config(self) -> dict[str, Any]:
        """The merged settings, without secrets, as JSON. Raises ConfigError, StoreUnavailable."""
        settings = self._me.settings_now()
        plain: dict[str, Any] = json.loads(json.dumps(settings.merged, default=str, skipkeys=True))
        return plain

    def save_config(self, changed: Sequence[tuple[Keys, Any]], removed: Sequence[Keys]) -> None:
        """Set and remove keys in ``config.yaml``. Raises ConfigError, EditRefused, StoreUnavailable."""
        self._me.hold()
        values: dict[str | tuple[str, ...], Any] = {tuple(keys): value for keys, value in changed}
        change(self._profile, values, remove=[tuple(keys) for keys in removed])

    def load_env(self) -> dict[str, str]:
        """What ``.env`` says now. Raises StoreUnavailable, ConfigError."""
        return dotenv.read(self._profile.paths.dotenv)

    def save_env(self, name: str, value: str | None) -> None:
        """Set or remove one variable in ``.env``. Raises UsageError, EditRefused, StoreUnavailable."""
        self._me.hold()
        dotenv.set_values(self._profile.paths.dotenv, {name: value})

    def secret(self, name: str) -> str | None:
        """The secret from ``.env`` as it is now, else from the environment of the start."""
        secrets = Secrets.of(self._profile.paths.dotenv, self._me.secrets().environ)
        found = secrets.get(name)
        return found.reveal() if found else None

    def call_llm(self, **request: Any) -> dict[str, Any]:
        """Ask the model of the profile. Raises ModelUnavailable, also where the profile has none."""
        from hermes.compat.completing import complete  # an HTTP client: most plugins never ask

        return complete(self._me.model().endpoint, request)

    def notify(self, level: str, text: str) -> None:
        """Write *text* to the log of the profile."""
        self._me.log().log(_LEVELS.get(level, logging.INFO), "%s", text)

    def plugins(self, kind: str) -> list[dict[str, Any]]:
        """The plugins of *kind* that can be chosen."""
        return [
            {
                "name": plugin.name,
                "description": plugin.manifest.description,
                "path": str(plugin.path) if plugin.path else "",
                "spec": _plain(plugin.spec()),
            }
            for plugin in self._me.plugins().all
            if plugin.kind == kind
        ]


def _plain(spec: Mapping[str, Any]) -> dict[str, Any]:
    return dict(spec)
