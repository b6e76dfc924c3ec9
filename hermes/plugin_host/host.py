"""What a plugin may ask of its host.

A plugin in a worker process asks through a pipe, so everything that goes in or comes out is JSON: texts,
numbers, True, False, None, lists, and mappings with texts as keys. Standard library only: worker processes
import this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Json = Any
"""A value that JSON can hold."""
Keys = Sequence[str]
"""The keys that lead to a value, from the outermost."""


class Host(Protocol):
    """One open profile, seen from the plugins that run for it.

    A question that cannot be answered raises a ``HermesError`` whose message is for the person.
    """

    def home(self) -> str:
        """The home of the profile."""
        ...

    def profile_name(self) -> str:
        """The name of the profile."""
        ...

    def root(self) -> str:
        """The root that the profiles share; the home of ``default``."""
        ...

    def list_profiles(self) -> list[str]:
        """The names of all profiles below the root."""
        ...

    def load_config(self) -> dict[str, Json]:
        """The settings of the profile as they are on disk now, merged, without secrets."""
        ...

    def save_config(self, changed: Sequence[tuple[Keys, Json]], removed: Sequence[Keys]) -> None:
        """Set and remove keys in the profile's ``config.yaml``, in one write; all of it or nothing."""
        ...

    def load_env(self) -> dict[str, str]:
        """The variables in the profile's ``.env`` as it is now."""
        ...

    def save_env(self, name: str, value: str | None) -> None:
        """Set one variable in the profile's ``.env``; None removes it."""
        ...

    def secret(self, name: str) -> str | None:
        """The secret called *name*, from ``.env`` or from the environment of the start; None for none."""
        ...

    def call_llm(self, **request: Json) -> dict[str, Json]:
        """Ask the profile's model, ``messages`` and the options of the OpenAI interface given.

        Returns the completion as that interface describes it (``choices``, ``usage``, ``model``).
        """
        ...

    def notify(self, level: str, text: str) -> None:
        """Write *text* to the profile's log; *level* is ``debug``, ``info``, ``warning`` or ``error``."""
        ...

    def plugins(self, kind: str) -> list[dict[str, Json]]:
        """The plugins of *kind* that can be chosen, each with ``name``, ``description``, ``path``, ``spec``."""
        ...


METHODS = frozenset(name for name in vars(Host) if not name.startswith("_"))
"""What may be asked over a pipe; nothing else is."""
