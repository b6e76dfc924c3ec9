"""An agent with memory that lasts. Run it twice: the second run knows what the first one was told."""

import sys
from collections.abc import Callable

from hermes.containers import Hermes
from hermes.memory.manager import build_memory_context_block


def answer(system: str, prompt: str) -> str:
    """Stands for your model: it repeats what it was given."""
    return f"(a model would now see)\n{system}\n{prompt}"


def converse(lines: list[str], session_id: str, model: Callable[[str, str], str] = answer) -> list[str]:
    """One session: every line of *lines* is a turn."""
    said = []
    with Hermes().open() as me:
        memory = me.memory_manager()
        memory.initialize_all(session_id)
        system = memory.build_system_prompt()
        for number, line in enumerate(lines, 1):
            memory.on_turn_start(number, line)
            recalled = build_memory_context_block(memory.prefetch_all(line))
            said.append(model(system, f"{line}\n\n{recalled}"))
            memory.sync_all(line, said[-1])
            memory.queue_prefetch_all(line)
        memory.on_session_end([])
    return said


if __name__ == "__main__":
    print(*converse(sys.argv[2:], session_id=sys.argv[1]), sep="\n\n")
