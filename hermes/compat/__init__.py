"""The modules that published plugins import from their host, served to them under the names they know.

``served/`` holds the modules, ``finder`` puts them in the way of an import, ``current`` is the profile that
they speak for. Standard library only, except where a module says otherwise: worker processes import them.
"""

CONTRACT_VERSION = "0.22.0"
"""The version of the plugin contract that this host keeps: what a plugin is told that asks for a version."""
