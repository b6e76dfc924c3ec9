"""The modules that are served: ``agent.memory_provider`` is ``agent/memory_provider.py`` here, and so on.

They are run under the names that plugins import, never as parts of this package, which is one so that they are
installed. State lies in ``hermes.compat.current``: each of them may be forgotten and run again.
"""
