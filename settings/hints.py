"""Keys that other hosts use in the same files, and what a mistyped key was most likely meant to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hermes.settings.schema import OWN


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELSEWHERE: Mapping[str, frozenset[str]] = {
    "memory": _words("flush_min_turns approval external_prefetch_timeout memory_notifications"),
    "plugins": _words("enabled entries auto_update paths"),
    "context": _words("threshold threshold_percent protect_first_n protect_last_n context_length"),
    "model": _words(
        """
        api_mode aws_region cache_ttl context_length default default_headers extra_body extra_headers
        fallback max_tokens openai_runtime provider reasoning_effort region routing service_tier
        temperature timeout top_p
        """
    ),
    "display": _words(
        """
        background_process_notifications bell_on_complete busy_input_mode cleanup_progress compact
        copy_shortcut details_mode ephemeral_system_ttl final_response_markdown inline_diffs
        interim_assistant_messages language long_running_notifications mouse_tracking persistent_output
        personality platforms resume_display runtime_footer sections show_cost show_reasoning skin
        streaming thinking_mode timestamps tool_preview_length tool_progress tool_progress_command
        tool_progress_grouping tool_progress_overrides turn_completion_explainer user_message_preview
        """
    ),
    "tools": _words("enabled tool_search timeout output"),
    "journal": frozenset(),
    "local": frozenset(),
}
"""Keys in sections of ours that another host reads: known, and inert here."""

FOREIGN = _words(
    """
    _config_version agent approvals auxiliary bedrock browser checkpoints code_execution
    command_allowlist compression cron custom_providers dashboard delegation disabled_toolsets discord
    fallback_model fallback_providers file_read_max_chars gateway goals honcho hooks human_delay kanban
    known_plugin_toolsets logging matrix mattermost mcp mcp_servers model_aliases model_catalog models
    network onboarding openrouter personalities platform_toolsets platforms prefill_messages_file privacy
    prompt_caching provider_routing providers quick_commands sandbox secrets security session_reset
    sessions signal skills slack smart_model_routing streaming stt telegram terminal timezone tool
    tool_loop_guardrails tool_output toolset toolsets tts updates voice web whatsapp x_search
    """
)
"""Top-level sections that a home of another host has: never taken for a mistyped section of ours."""


def did_you_mean(word: object, known: Iterable[str], *, likeness: float = 0.6) -> str:
    """``" (did you mean 'provider'?)"``, or nothing when no known word is near.

    *likeness* is from 0 (anything will do) to 1 (the same word).
    """
    import difflib  # takes a while to import, and is wanted for mistakes only

    near = difflib.get_close_matches(str(word).lower(), list(known), n=1, cutoff=likeness)
    return f" (did you mean {near[0]!r}?)" if near else ""


def mistyped_section(name: object) -> str:
    """What ``did_you_mean`` says of a top-level section that is not ours; nothing for one that is known."""
    if not isinstance(name, str) or name in FOREIGN:
        return ""
    lower = name.lower()
    # cheap, and nearly always the end of it: every load passes here for every foreign section
    if not any(lower[:1] == own[:1] and abs(len(lower) - len(own)) <= 1 for own in OWN):
        return ""
    return did_you_mean(name, OWN)
