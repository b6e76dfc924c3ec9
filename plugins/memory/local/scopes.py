"""Whose memory a session may see: the owner's, one user's, one chat's, or that session's alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes.plugins.memory.local.records import OWNER

_OWN = frozenset({"acp", "cli", "cron", "desktop", "flush", "ide", "mcp", "subagent", "terminal", "tui"})
"""Platforms on which nobody but the profile's owner speaks. What is not listed may be shared by many."""
_REPOSITORY = (".git", ".hg", ".jj", ".svn")


def scope_of(session_id: str, given: Mapping[str, Any]) -> str:
    """The scope for what ``initialize`` was given; two people never share one, and nobody gets everybody's.

    A user id counts together with its platform, since "42" is somebody else on the next. Without one, a chat
    (and its thread) keeps to itself; with neither, the session does, unless the owner alone can be speaking.
    """
    platform = _text(given, "platform").lower()
    if user := _text(given, "user_id") or _text(given, "user_id_alt"):
        return _key("user", platform, user)
    chat = _text(given, "gateway_session_key") or _text(given, "chat_id") or _text(given, "channel_id")
    if chat or _text(given, "thread_id"):
        return _key("chat", platform, chat, _text(given, "thread_id"))
    if platform in _OWN or not platform:  # an application that names no platform has no others' chats in it
        return OWNER
    return _key("session", platform, session_id)


def project_of(given: Mapping[str, Any]) -> str:
    """The scope of the repository, else of the folder, that the owner works in; the owner's where it is none.

    The home folder and the root of the file system are no project.
    """
    try:
        folder = Path(os.path.realpath(_text(given, "cwd") or "."))
    except FileNotFoundError:  # the folder was removed under this process
        return OWNER
    for above in (folder, *folder.parents):
        if any((above / mark).exists() for mark in _REPOSITORY):
            return _key("project", str(above))
    return OWNER if folder in (Path.home(), Path(folder.anchor)) else _key("project", str(folder))


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return "" if value is None else str(value).strip()


def _key(*parts: str) -> str:
    """Parts joined so that no two lists of parts give the same text."""
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
