"""One answer of an OpenAI-compatible endpoint, whole, as plain data.

The conversation streams through the client library; a plugin that asks for one answer needs no library.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from hermes.errors import ModelUnavailable, UsageError
from hermes.model.endpoint import NO_KEY, Endpoint

LONGEST_WAIT = 600.0
_SECONDS = 120.0
_MOST_BYTES = 16 << 20


def complete(endpoint: Endpoint, request: Mapping[str, Any]) -> dict[str, Any]:
    """What *endpoint* answers to *request*: ``messages`` and the options of the OpenAI interface.

    ``model`` None or missing means that of the endpoint, ``timeout`` is in seconds, what stands in
    ``extra_body`` is sent as it is, None leaves an option out. Raises UsageError for a request that cannot be
    made, ModelUnavailable for everything that goes wrong behind it.
    """
    given = {name: value for name, value in request.items() if value is not None}
    if not given.get("messages"):
        raise UsageError("call_llm needs messages")
    if given.pop("stream", False):
        raise UsageError("call_llm answers in one piece", next_step="leave stream out")
    seconds = min(float(given.pop("timeout", _SECONDS)), LONGEST_WAIT)
    body = {"model": endpoint.name, **given, **given.pop("extra_body", {})}
    body.pop("extra_body", None)
    return _answer(endpoint, _sent(endpoint, body, seconds))


def _sent(endpoint: Endpoint, body: Mapping[str, Any], seconds: float) -> bytes:
    key = endpoint.api_key.reveal() if endpoint.api_key else NO_KEY
    request = urllib.request.Request(  # noqa: S310 - the endpoint has checked the scheme
        f"{endpoint.base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {key}"},
    )
    try:
        with _OPENER.open(request, timeout=seconds) as response:
            content: bytes = response.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as exc:
        with exc:
            said = _reason(exc.read(_MOST_BYTES))
        step = "check the key: hermes config set model.api_key" if exc.code in (401, 403) else ""
        raise ModelUnavailable(
            f"{endpoint.host} answered {exc.code}: {said or exc.reason}", status=exc.code, next_step=step
        ) from exc
    except OSError as exc:  # URLError, TimeoutError and what a connection breaks off with
        what = getattr(exc, "reason", None) or exc
        raise ModelUnavailable(
            f"{endpoint.host} cannot be reached: {what}",
            retry_after=0.0,
            next_step="check model.base_url and the network",
        ) from exc
    if len(content) > _MOST_BYTES:
        raise ModelUnavailable(f"{endpoint.host} answered with more than {_MOST_BYTES >> 20} MiB")
    return content


def _answer(endpoint: Endpoint, content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
        message = answer["choices"][0]["message"]
    except (ValueError, LookupError, TypeError) as exc:
        raise ModelUnavailable(f"{endpoint.host} sent something that is no completion") from exc
    if not isinstance(message, dict):
        raise ModelUnavailable(f"{endpoint.host} sent something that is no completion")
    return dict(answer)


def _reason(content: bytes) -> str:
    """What the server gave as its reason, in one bounded line."""
    try:
        error = json.loads(content)["error"]
        text = error["message"] if isinstance(error, dict) else error
    except (ValueError, LookupError, TypeError):
        text = content.decode("utf-8", "replace")
    return " ".join(str(text).split())[:200]


class _StayPut(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the key would go along."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_StayPut)
