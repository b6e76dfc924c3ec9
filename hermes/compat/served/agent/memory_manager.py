"""The manager of the memory providers. Needs attrs."""

from hermes.memory.manager import (
    MemoryManager,
    StreamingContextScrubber,
    build_memory_context_block,
    inject_memory_provider_tools,
    memory_provider_tools_enabled,
    normalize_tool_schema,
    sanitize_context,
)

__all__ = [
    "MemoryManager",
    "StreamingContextScrubber",
    "build_memory_context_block",
    "inject_memory_provider_tools",
    "memory_provider_tools_enabled",
    "normalize_tool_schema",
    "sanitize_context",
]
