"""The profile's model, asked by a plugin."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hermes.errors import ModelUnavailable, UsageError

Served = Callable[[str], ModuleType]
HELLO = {
    "choices": [{"message": {"role": "assistant", "content": "hello"}}],
    "model": "m",
    "usage": {"total_tokens": 3},
}
ASKED = [{"role": "user", "content": "hi"}]


class Endpoint:
    """An endpoint on this machine: *answer* is a status, a body, and headers; ``requests`` is what it was asked."""

    def __init__(self) -> None:
        self.answer: tuple[int, Any, dict[str, str]] = (200, HELLO, {})
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """What ``model.base_url`` is set to."""
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.requests.append((self.path, dict(self.headers), json.loads(body)))
                status, answer, headers = endpoint.answer
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                """Nothing."""

        return Handler


@pytest.fixture
def endpoint(hermes_home: Path) -> Iterator[Endpoint]:
    """An endpoint that the profile's settings name; ask for it before the profile."""
    endpoint = Endpoint()
    hermes_home.mkdir()
    (hermes_home / "config.yaml").write_text(
        f"model:\n  base_url: {endpoint.url}\n  name: small\n  api_key: sk-of-the-profile\n"
    )
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


@pytest.fixture
def client(endpoint: Endpoint, served: Served) -> Any:
    """``agent.auxiliary_client``, for a profile with that endpoint."""
    return served("agent.auxiliary_client")


def test_a_plugin_asks_the_model_of_the_profile(endpoint: Endpoint, client: Any) -> None:
    """The request goes to the profile's endpoint with its key and model; the answer has attributes."""
    response = client.call_llm(
        task="compression",
        provider="auto",
        messages=ASKED,
        temperature=0,
        max_tokens=None,
        timeout=5,
        extra_body={"response_format": {"type": "json_object"}},
    )
    assert response.choices[0].message.content == "hello"
    assert response.choices[0].message.tool_calls is None
    assert response.usage.total_tokens == 3
    ((path, headers, body),) = endpoint.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer sk-of-the-profile"
    assert body == {
        "model": "small",
        "messages": ASKED,
        "temperature": 0,
        "response_format": {"type": "json_object"},
    }


def test_another_model_of_the_same_endpoint(endpoint: Endpoint, client: Any) -> None:
    """A plugin may name the model; it may not name another endpoint, which would get what the person said."""
    client.call_llm("summary", messages=ASKED, model="large")
    assert endpoint.requests[0][2]["model"] == "large"
    for name in ("base_url", "api_key"):
        with pytest.raises(UsageError, match=name):
            client.call_llm(messages=ASKED, **{name: "http://127.0.0.1:1/v1"})
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": " hello "}, "hello"),
        ({"content": "<think>hm\nhm</think>\nhello"}, "hello"),
        ({"content": "<think>never closed"}, ""),
        ({"content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "lo"}]}, "hello"),
        ({"content": None, "reasoning": "thought"}, "thought"),
        ({"content": "", "reasoning_content": "thought"}, "thought"),
        ({"content": None}, ""),
    ],
)
def test_the_text_of_an_answer(endpoint: Endpoint, client: Any, message: dict[str, Any], text: str) -> None:
    """Text in whatever form it comes, without thinking aloud; the reasoning where there is nothing else."""
    endpoint.answer = (200, {"choices": [{"message": message}]}, {})
    assert client.extract_content_or_reasoning(client.call_llm(messages=ASKED)) == text


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((401, {"error": {"message": "no such key"}}, {}), "answered 401: no such key"),
        ((500, b"<html>broken</html>", {}), "answered 500"),
        ((200, b"<html>a page</html>", {}), "no completion"),
        ((200, {"choices": []}, {}), "no completion"),
        ((307, b"", {"Location": "http://127.0.0.1:9/steal"}), "answered 307"),
        ((302, b"", {"Location": "http://127.0.0.1:9/steal"}), "answered 302"),
    ],
)
def test_what_goes_wrong_is_one_clear_error(endpoint: Endpoint, client: Any, answer: Any, said: str) -> None:
    """An error, a page, an empty answer and a redirect are errors that name the host; the key goes nowhere else."""
    endpoint.answer = answer
    with pytest.raises(ModelUnavailable, match=said) as raised:
        client.call_llm(messages=ASKED)
    assert "127.0.0.1" in raised.value.message
    assert "sk-of-the-profile" not in str(raised.value)


def test_a_profile_without_a_model(served: Served) -> None:
    """Without an endpoint in the settings the error says which settings are missing."""
    with pytest.raises(ModelUnavailable, match=r"model\.base_url and model\.name"):
        served("agent.auxiliary_client").call_llm(messages=ASKED)


def test_nobody_listens(endpoint: Endpoint, client: Any) -> None:
    """An endpoint that is down is said to be, at once."""
    endpoint.server.shutdown()
    endpoint.server.server_close()
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        client.call_llm(messages=ASKED)
