"""Calling the model: streamed, tried again where that can help, and every failure one clear error.

The official client is imported here and nowhere else, when the first call is made: that alone takes half a
second. ``preload`` begins it in the background, while the prompt is put together.
"""

from __future__ import annotations

import contextlib
import email.utils
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hermes.errors import ContextTooLong, ModelUnavailable
from hermes.model.answer import Answer, Gathering
from hermes.model.endpoint import NO_KEY, Endpoint

Message = dict[str, Any]

TRIES = 4
LONGEST_WAIT = 60.0
"""Seconds: a server that wants more patience than this is not waited for."""
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 120.0
"""Seconds without a byte after which an answer counts as lost."""
_FIRST_WAIT = 0.5
_PASSING = frozenset({408, 409, 425, 429})
_TOO_LONG = ("context_length_exceeded", "exceed_context_size_error", "maximum context length", "context size")


class Model:
    """The model at *endpoint*. *wait* sleeps for so many seconds; *told* hears of each new attempt."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        wait: Callable[[float], object] = time.sleep,
        told: Callable[[str], None] = lambda _: None,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        self.endpoint = endpoint
        self.told = told
        self._wait = wait
        self._silence = silence
        self._lock = threading.Lock()
        self._client: Any = None
        self._counts_usage = True

    def preload(self) -> None:
        """Import the client library in the background."""

        def load() -> None:
            with contextlib.suppress(ModelUnavailable):  # the first call says so
                self._open()

        threading.Thread(target=load, name="hermes-model-import", daemon=True).start()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def ask(self, messages: Sequence[Message], **options: Any) -> str:
        """The answer to *messages* as one text. Raises as ``stream``; ModelUnavailable for a cut answer."""
        answer = self.stream(messages, **options).finish()
        if not answer.complete:
            raise ModelUnavailable(f"{self.endpoint.host} broke off in the middle of its answer")
        return answer.text

    def stream(self, messages: Sequence[Message], *, tools: Sequence[Message] = (), **options: Any) -> Stream:
        """Ask the model; the pieces of its answer as they come.

        Tried again, as long as nothing has arrived, on what passes: no connection, 408, 409, 425, 429, 5xx.
        Raises ModelUnavailable; ContextTooLong where *messages* are more than the model takes.
        """
        request = {"messages": list(messages), "stream": True, "model": self.endpoint.name, **options}
        if tools:
            request["tools"] = list(tools)
        return Stream(self._pieces(request))

    def _pieces(self, request: dict[str, Any]) -> Iterator[tuple[str, Gathering]]:
        for attempt in range(1, TRIES + 1):
            gathered = Gathering()
            try:
                yield from self._once(request, gathered)
            except ModelUnavailable as exc:
                if gathered.begun or exc.retry_after is None or attempt == TRIES:
                    raise
                pause = exc.retry_after or _FIRST_WAIT * 2 ** (attempt - 1) * (0.75 + random.random() / 4)  # noqa: S311
                self.told(
                    f"{exc.message}; trying again in {pause:.0f} s"
                    if pause >= 1
                    else f"{exc.message}; trying again"
                )
                self._wait(pause)
            else:
                return

    def _once(self, request: dict[str, Any], gathered: Gathering) -> Iterator[tuple[str, Gathering]]:
        client = self._open()
        import openai

        try:
            with self._created(client, request) as chunks:
                for chunk in chunks:
                    yield gathered.add(chunk), gathered
        except openai.APIError as exc:
            raise self._failure(exc) from exc
        except json.JSONDecodeError as exc:
            raise ModelUnavailable(
                f"{self.endpoint.host} sent something that is no JSON", retry_after=0.0
            ) from exc

    def _created(self, client: Any, request: dict[str, Any]) -> Any:
        """The open stream; asked once more without the count of tokens where a server does not know that."""
        import openai

        usage = {"stream_options": {"include_usage": True}} if self._counts_usage else {}
        try:
            return client.chat.completions.create(**request, **usage)
        except openai.BadRequestError as exc:
            if not usage or "stream_options" not in str(exc):
                raise
            self._counts_usage = False
            return client.chat.completions.create(**request)

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                try:
                    import httpx2
                    import openai
                except ImportError as exc:
                    raise ModelUnavailable(
                        f"the client library of the model is not installed ({exc})",
                        next_step="pip install 'hermes-framework[chat]'",
                    ) from exc
                key = self.endpoint.api_key
                self._client = openai.OpenAI(
                    api_key=key.reveal() if key else NO_KEY,
                    base_url=self.endpoint.base_url,
                    organization="",
                    project="",
                    max_retries=0,
                    timeout=httpx2.Timeout(
                        connect=CONNECT_SECONDS,
                        read=self._silence,
                        write=CONNECT_SECONDS,
                        pool=CONNECT_SECONDS,
                    ),
                )
            return self._client

    def _failure(self, exc: Any) -> ModelUnavailable:
        """*exc* of the client library as an error of ours."""
        import openai

        host, status = self.endpoint.host, getattr(exc, "status_code", None)
        said = _said(exc)
        if status is None:
            passing = isinstance(exc, openai.APIConnectionError)
            what = (
                "did not answer in time" if isinstance(exc, openai.APITimeoutError) else "cannot be reached"
            )
            text = f"{host} {what}" if passing else f"{host} broke off: {said}"
            return ModelUnavailable(text, retry_after=0.0, next_step="check model.base_url and the network")
        if status in (400, 413, 422) and any(
            mark in f"{exc.code} {exc.type} {said}".lower() for mark in _TOO_LONG
        ):
            return ContextTooLong(f"{host}: {said}", status=status)
        text = f"{host} answered {status}: {said}"
        if status in (401, 403):
            return ModelUnavailable(
                text, status=status, next_step="check the key: hermes config set model.api_key"
            )
        if status == 404:
            step = "check model.name and model.base_url (it usually ends in /v1)"
            return ModelUnavailable(text, status=status, next_step=step)
        if status in _PASSING or status >= 500:
            pause = _retry_after(exc.response.headers)
            if pause > LONGEST_WAIT:
                return ModelUnavailable(text, status=status, next_step=f"try again in {pause:.0f} s")
            return ModelUnavailable(text, status=status, retry_after=pause)
        return ModelUnavailable(text, status=status)


class Stream:
    """An answer that is arriving: iterate for its text, then ``finish``; ``close`` stops it."""

    def __init__(self, pieces: Iterator[tuple[str, Gathering]]) -> None:
        self._pieces = pieces
        self._gathered = Gathering()

    def __iter__(self) -> Iterator[str]:
        for text, gathered in self._pieces:
            self._gathered = gathered
            if text:
                yield text

    def finish(self) -> Answer:
        """Take in what is still to come; the whole answer."""
        for _ in self:
            pass
        return self._gathered.answer()

    def close(self) -> Answer:
        """Stop it; what has arrived."""
        self._pieces.close()  # type: ignore[attr-defined] # it is a generator
        return self._gathered.answer()


def _said(exc: Any) -> str:
    """What the server gave as its reason, in one bounded line."""
    body = exc.body
    text = body.get("message") if isinstance(body, dict) else body
    line = " ".join(str(text or exc.message).split())
    return line if len(line) <= 200 else line[:199] + "…"


def _retry_after(headers: Any) -> float:
    """Seconds that the server asks to wait; 0 where it does not say."""
    try:
        if given := headers.get("retry-after-ms"):
            return max(0.0, float(given) / 1000)
        given = headers.get("retry-after") or "0"
        if given.strip().replace(".", "", 1).isdigit():
            return float(given)
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
    except ValueError:
        return 0.0
