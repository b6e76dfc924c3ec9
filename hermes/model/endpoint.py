"""Where the model is and what it is called."""

from __future__ import annotations

from urllib.parse import urlsplit

import attrs

from hermes.errors import ModelUnavailable
from hermes.secret import Secret

NO_KEY = "none"
"""What is sent where no key is set: servers on this machine want something, and look at nothing."""


@attrs.frozen
class Endpoint:
    """An OpenAI-compatible endpoint; *base_url* ends before ``/chat/completions``."""

    base_url: str
    name: str
    api_key: Secret | None
    context_length: int
    """Tokens that the model takes in one call."""

    @property
    def host(self) -> str:
        """Who is asked, for messages."""
        return urlsplit(self.base_url).netloc or self.base_url


def endpoint(base_url: str | None, name: str | None, api_key: Secret | None, context_length: int) -> Endpoint:
    """The endpoint that the settings describe. Raises ModelUnavailable with what is missing."""
    missing = [key for key, value in (("base_url", base_url), ("name", name)) if not value]
    if missing or base_url is None or name is None:
        raise ModelUnavailable(
            f"no model is set up: {' and '.join(f'model.{key}' for key in missing)} missing",
            next_step="hermes config set model.base_url https://HOST/v1 && hermes config set model.name NAME",
        )
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ModelUnavailable(
            f"model.base_url is {base_url!r}, which is no http address",
            next_step="hermes config set model.base_url https://HOST/v1",
        )
    return Endpoint(base_url.rstrip("/"), name, api_key, context_length)
