"""An event loop in a thread of its own, for providers whose members are coroutines."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class Coroutines:
    """Runs awaitables to their end. The loop starts with the first of them and lasts until ``close``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def settle(self, result: Any) -> Any:
        """*result*, or what it gives when it is awaited; waits for that."""
        if not inspect.isawaitable(result):
            return result
        import asyncio

        return asyncio.run_coroutine_threadsafe(_awaited(result), self._running()).result()

    def close(self, seconds: float) -> bool:
        """Cancel what runs, end the loop and wait for it, *seconds* at most; False if a call holds it."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return True
        loop.call_soon_threadsafe(loop.stop)
        thread.join(max(seconds, 0.0))
        return not thread.is_alive()

    def _running(self) -> asyncio.AbstractEventLoop:
        import asyncio

        with self._lock:
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _awaited(result: Awaitable[Any]) -> Any:
    return await result
