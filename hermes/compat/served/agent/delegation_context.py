"""Whether this is a subagent's process; it never is: plugins run for the agent that a person talks to."""


def is_delegated_child_context() -> bool:
    """False."""
    return False


def is_delegated_child_process_context() -> bool:
    """False."""
    return False


def is_dispatcher_owned_worker_context() -> bool:
    """False."""
    return False
