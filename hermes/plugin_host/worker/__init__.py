"""Outside plugins in a process of their own: ``docs/isolation.md`` says what that gives.

There run ``keeper``, ``child``, ``describing``, ``failures`` and ``protocol``, which need the standard library only,
so this file imports nothing. Here run ``opening``, ``restarting``, ``process`` and ``provider``, and ``foreground`` for
what needs a terminal.
"""
