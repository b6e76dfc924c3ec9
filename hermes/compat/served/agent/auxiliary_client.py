"""The model of the profile, for plugins that need an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from hermes.compat import current
from hermes.errors import UsageError

_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_REASONING = ("reasoning", "reasoning_content")
_ELSEWHERE = ("base_url", "api_key")


def call_llm(
    task: str | None = None,
    *,
    messages: list[dict[str, Any]],
    provider: str | None = None,
    main_runtime: Mapping[str, Any] | None = None,
    api_mode: str | None = None,
    reasoning_config: Mapping[str, Any] | None = None,
    stream_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Ask the profile's model; the completion, with attributes as the OpenAI client gives them.

    *options* are those of the interface (``model``, ``temperature``, ``max_tokens``, ``tools``, ``timeout``,
    ``extra_body``). The other arguments choose between endpoints on other hosts; a profile has one. Raises
    UsageError for an endpoint of the caller's own, ModelUnavailable where there is no model or no answer.
    """
    for name in _ELSEWHERE:
        if options.pop(name, None):
            raise UsageError(
                f"call_llm asks the profile's model; it takes no {name}",
                next_step="hermes config set model.base_url https://HOST/v1",
            )
    return _with_attributes(current.profile().call_llm(messages=messages, **options))


def extract_content_or_reasoning(response: Any) -> str:
    """The text of a completion, without what the model thought aloud; its reasoning where it said nothing else."""
    message = response.choices[0].message
    content = getattr(message, "content", None)
    if isinstance(content, list):
        content = "".join(getattr(part, "text", None) or "" for part in content)
    text = _THINKING.sub("", content or "").strip()
    for name in _REASONING:
        text = text or str(getattr(message, name, None) or "").strip()
    return text


def _with_attributes(completion: Mapping[str, Any]) -> Any:
    answer = json.loads(json.dumps(completion), object_hook=lambda fields: SimpleNamespace(**fields))
    for choice in answer.choices:
        for name in ("content", "tool_calls"):
            if not hasattr(choice.message, name):
                setattr(choice.message, name, None)
    for name in ("usage", "model"):
        if not hasattr(answer, name):
            setattr(answer, name, None)
    return answer
