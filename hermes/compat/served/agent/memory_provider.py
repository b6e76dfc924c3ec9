"""The contract of a memory provider."""

from hermes.memory.provider import (
    CORE_MEMORY_PROVIDER_SENTINELS,
    INDICATOR_GLYPH,
    PRE_COMPRESS_CHECKPOINT_API_VERSION,
    MemoryProvider,
    RecallStatus,
    ctx_bound,
    is_core_memory_provider,
    is_trivial_prompt,
    spawn_context_thread,
)

__all__ = [
    "CORE_MEMORY_PROVIDER_SENTINELS",
    "INDICATOR_GLYPH",
    "PRE_COMPRESS_CHECKPOINT_API_VERSION",
    "MemoryProvider",
    "RecallStatus",
    "ctx_bound",
    "is_core_memory_provider",
    "is_trivial_prompt",
    "spawn_context_thread",
]
