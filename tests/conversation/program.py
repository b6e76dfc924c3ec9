"""A conversation in a process of its own: ``program HOME PROFILE BASE_URL CONTEXT``.

Each line of standard input is one thing to do: words to say, ``/new``, ``/compress``; each line of the output
is the state that it led to.
"""

from __future__ import annotations

import sys

from hermes.containers import Hermes
from hermes.conversation import Conversation


def main(home: str, profile: str, base_url: str, context: str) -> None:
    """Do what standard input says, until it ends."""
    settings = [
        f"model.base_url={base_url}",
        "model.name=scripted",
        f"model.context_length={context}",
        "memory.provider=local",
    ]
    with Hermes(environ={"HERMES_HOME": home, "HOME": home}, settings=settings).open(profile) as me:
        talk = Conversation(
            memory=me.memory_manager(),
            sessions=me.sessions(),
            model=me.model(),
            engine=me.context_engine(),
            nudge_every=0,
        )
        talk.start()
        print("ready", flush=True)
        for line in sys.stdin:
            words = line.strip()
            if words == "/new":
                outcome = talk.new()
            elif words == "/compress":
                outcome = "compressed" if talk.compress().done else "not compressed"
            else:
                outcome = talk.say(words).state
            print(outcome, flush=True)
        talk.close()
        talk.memory.flush_pending(20)


if __name__ == "__main__":
    main(*sys.argv[1:])
