"""An OpenAI-compatible server on loopback that answers by a script, with every fault that a stream can have."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]


def says(text: str, *, prompt: int = 10, pieces: int = 3) -> list[dict[str, Any]]:
    """The chunks of an answer in words."""
    size = max(1, -(-len(text) // pieces))
    cut = [text[i : i + size] for i in range(0, len(text), size)]
    return [*({"content": piece} for piece in cut), {"finish": "stop"}, {"usage": (prompt, len(text) // 4)}]


def calls(
    name: str, arguments: dict[str, Any] | str, *, call_id: str = "c1", text: str = ""
) -> list[dict[str, Any]]:
    """The chunks of an answer that wants a tool run."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments)
    half = len(given) // 2
    return [
        *([{"content": text}] if text else []),
        {"tool": (0, call_id, name, given[:half])},
        {"tool": (0, None, None, given[half:])},
        {"finish": "tool_calls"},
        {"usage": (10, 5)},
    ]


class ScriptedModel:
    """Serves *answer*: called with each request, it returns chunks, a status with a body, or a fault by name."""

    def __init__(self, answer: Callable[[Request], Any]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        self.proceed = threading.Event()
        self.reached = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def base_url(self) -> str:
        """What ``model.base_url`` is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stop serving."""
        self.proceed.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.requests.append(request)
                model.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.close_connection = True
                answer = model.answer(request)
                if isinstance(answer, tuple):
                    self._plain(*answer)
                else:
                    self._stream(answer)

            def _plain(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, chunks: Any) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    for line in self._lines(chunks):
                        data = f"{line}\n\n".encode()
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                        self.wfile.flush()
                    self.wfile.write(b"0\r\n\r\n")
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the caller has stopped the answer

            def _lines(self, chunks: Any) -> Iterator[str]:
                for chunk in chunks:
                    if chunk == "hang":
                        model.reached.set()
                        model.proceed.wait(60)
                    elif chunk == "drop":
                        raise BrokenPipeError
                    elif isinstance(chunk, str):
                        yield chunk
                    else:
                        yield f"data: {json.dumps(_chunk(chunk))}"
                if "cut" not in chunks:
                    yield "data: [DONE]"

        return Handler


def _chunk(part: dict[str, Any]) -> dict[str, Any]:
    base = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    if usage := part.get("usage"):
        prompt, completion = usage
        counted = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
        return {**base, "choices": [], "usage": counted}
    if error := part.get("error"):
        return {"error": error}
    delta: dict[str, Any] = {}
    if "content" in part:
        delta["content"] = part["content"]
    if tool := part.get("tool"):
        index, call_id, name, arguments = tool
        function = {"arguments": arguments, **({"name": name} if name else {})}
        delta["tool_calls"] = [
            {"index": index, "function": function, **({"id": call_id, "type": "function"} if call_id else {})}
        ]
    return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": part.get("finish")}]}
