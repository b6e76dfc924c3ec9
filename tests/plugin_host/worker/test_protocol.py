"""Messages through a pipe: whole ones, large ones, none at all."""

from __future__ import annotations

import os
import threading
import time

import pytest

from hermes.plugin_host.worker.protocol import MOST, Broken, Peer, Unsendable, decode, encode


def two_ends() -> tuple[Peer, Peer]:
    """Both ends of one pipe."""
    here_in, there_out = os.pipe()
    there_in, here_out = os.pipe()
    return Peer(here_in, here_out), Peer(there_in, there_out)


def echoing(peer: Peer) -> threading.Thread:
    """Answer every question of the other end with itself."""
    thread = threading.Thread(
        target=peer.run, args=(lambda m: peer.send({"reply": m["id"], "result": m["value"]}),)
    )
    thread.start()
    return thread


def test_many_threads_may_ask_at_once() -> None:
    """Each gets its own answer, whatever the size of the others'."""
    here, there = two_ends()
    threads = [echoing(there), threading.Thread(target=here.run, args=(lambda _: None,))]
    threads[1].start()
    wrong: list[int] = []

    def ask(number: int) -> None:
        value = str(number) * (1 + 100_000 * (number % 3))
        for _ in range(10):
            answer = here.ask({"value": value}).wait(30)
            if answer is None or answer["result"] != value:
                wrong.append(number)

    asking = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert wrong == []
    here.close()
    threads[0].join(20)
    there.close()
    threads[1].join(20)


def test_questions_end_with_the_other_end() -> None:
    """Who waits for an answer, and who asks later, hears that there will be none."""
    here, there = two_ends()
    listening = threading.Thread(target=here.run, args=(lambda _: None,))
    listening.start()
    waiting = here.ask({"value": 1})
    there.close()
    with pytest.raises(EOFError):
        waiting.wait(20)
    listening.join(20)
    with pytest.raises(EOFError):
        here.ask({"value": 2}).wait(20)
    here.close()
    there.run(lambda _: None)


def test_an_end_that_does_not_read_is_waited_for_until_the_deadline() -> None:
    """A full pipe is no reason to wait for ever."""
    here, there = two_ends()
    with pytest.raises(TimeoutError):
        here.send({"value": "x" * (1 << 20)}, time.monotonic() + 0.1)
    for one in (here, there):
        one.close()
    for one in (here, there):
        one.run(lambda _: None)


def test_half_a_message_is_none() -> None:
    """What was cut off by the end of the sender is not taken for a message."""
    read, write = os.pipe()
    other, ours = os.pipe()
    os.write(write, b"\x10\x00\x00\x00{")
    os.close(write)
    peer = Peer(read, ours)
    taken: list[object] = []
    peer.run(taken.append)
    assert taken == []
    peer.close()
    os.close(other)


@pytest.mark.parametrize("data", [b"nonsense", b"[1]", b"\xff\xff", b"[" * 100_000])
def test_what_is_no_message_is_named(data: bytes) -> None:
    """Anything but one JSON object is refused."""
    with pytest.raises(Broken, match="a message that is"):
        decode(data)


def test_text_of_every_kind_comes_through() -> None:
    """Also half of a surrogate pair, and characters that JSON would escape."""
    value = {"text": "Grüße 你好 \ud83d \x00 \u2028"}
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a": float("inf")}, "a is inf, which is not JSON"),
        ({"a": [object()]}, "a[0] is a object, which is not JSON"),
        ({"a": {b"k": 1}}, "a has a key that is a bytes, which is not JSON"),
        ({"a": "x" * MOST}, "bytes as JSON; 16777216 (16 MiB) are the most"),
    ],
)
def test_what_cannot_be_sent_is_named(value: dict[str, object], named: str) -> None:
    """The error says what it is and where it stands."""
    with pytest.raises(Unsendable) as caught:
        encode(value)
    assert named in caught.value.message
