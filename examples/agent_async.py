"""The same agent under asyncio: nothing here holds the event loop."""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from hermes.containers import Hermes
from hermes.memory.manager import build_memory_context_block


async def answer(system: str, prompt: str) -> str:
    """Stands for your model: it repeats what it was given."""
    return f"(a model would now see)\n{system}\n{prompt}"


async def converse(
    lines: list[str], session_id: str, model: Callable[[str, str], Awaitable[str]] = answer
) -> list[str]:
    """One session: every line of *lines* is a turn."""
    said, off = [], asyncio.to_thread
    me = await off(Hermes().open)
    try:
        memory = await off(me.memory_manager)
        await off(memory.initialize_all, session_id)
        system = await off(memory.build_system_prompt)
        for number, line in enumerate(lines, 1):
            await off(memory.on_turn_start, number, line)
            recalled = build_memory_context_block(await off(memory.prefetch_all, line))
            said.append(await model(system, f"{line}\n\n{recalled}"))
            await off(memory.sync_all, line, said[-1])
            await off(memory.queue_prefetch_all, line)
        await off(memory.on_session_end, [])
    finally:
        await off(me.close)
    return said


if __name__ == "__main__":
    print(*asyncio.run(converse(sys.argv[2:], session_id=sys.argv[1])), sep="\n\n")
