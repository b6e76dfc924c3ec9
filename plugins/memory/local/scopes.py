"""Whose memory a session may see: the owner's, one user's, one chat's, or that session's alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.plugins.memory.local.records import OWNER

_PLATFORMS = """
api api_server webhook gateway web telegram discord slack whatsapp signal matrix mattermost teams email
sms wechat weixin wecom dingtalk feishu lark line qq imessage bluebubbles homeassistant irc xmpp
rocketchat zulip twitter
"""
_SHARED = frozenset(_PLATFORMS.split())
"""Platforms on which more people than the profile's owner may speak."""


def scope_of(session_id: str, given: Mapping[str, Any]) -> str:
    """The scope for what ``initialize`` was given; two people never share one, and nobody gets everybody's.

    A user id counts together with its platform, since "42" is somebody else on the next. Without one, a chat
    (and its thread) keeps to itself; on a shared platform with neither, the session does.
    """
    platform = _text(given, "platform").lower()
    if user := _text(given, "user_id") or _text(given, "user_id_alt"):
        return _key("user", platform, user)
    chat = _text(given, "gateway_session_key") or _text(given, "chat_id") or _text(given, "channel_id")
    if chat or _text(given, "thread_id"):
        return _key("chat", platform, chat, _text(given, "thread_id"))
    if platform in _SHARED:
        return _key("session", platform, session_id)
    return OWNER


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return "" if value is None else str(value).strip()


def _key(*parts: str) -> str:
    """Parts joined so that no two lists of parts give the same text."""
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
