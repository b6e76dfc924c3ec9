"""Providers that break one rule each, made from the one that ``hermes plugins new`` writes."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import attrs

from hermes.plugin_host import scaffold
from hermes.testing.conformance import CHECKS, Examination, plugin_in

HERE = "# here"
"""Marks the line that a finding has to name."""


@attrs.frozen
class Broken:
    """The provider of the scaffold with one rule broken.

    *members* are put over those of its class, or *files* over its files. What is *said* must stand in a finding
    of *check*; *also* are other checks that cannot but notice.
    """

    check: str
    said: str
    members: str = ""
    files: Mapping[str, str | None] = attrs.field(factory=dict)
    severity: str = "error"
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.check}: {self.said}"


MANIFEST = """\
name: my-notes
version: 0.1.0
description: Keeps every turn.
hooks: [on_session_switch, on_memory_write]
provides_tools: [my_notes_search]
"""
README = """\
# my-notes

Keeps every turn in one file of the profile and finds it again by its words, so that later sessions know of it.
The setup asks for `limit` and `token`. The tool is `my_notes_search`.
"""
WITH_A_KEY = """
def get_config_schema(self):
    return [{"key": "token", "description": "Key", "secret": True, "env_var": "MY_NOTES_TOKEN"}]
"""

CASES = [
    # -- loads
    Broken("loads", "ZeroDivisionError", files={"__init__.py": "def register(ctx):\n    1 / 0  # here\n"}),
    Broken("loads", "SyntaxError", files={"__init__.py": "def register(ctx)  # here\n    pass\n"}),
    Broken("loads", "no memory provider", files={"__init__.py": "def register(ctx):\n    pass\n"}),
    Broken("loads", "reserved", 'name = "builtin"'),
    Broken("loads", "chosen as 'my-notes'", 'name = "other"', severity="warning"),
    # -- manifest
    Broken("manifest", "is missing", files={"plugin.yaml": None}, also=("hooks",)),
    Broken("manifest", "has no version", files={"plugin.yaml": MANIFEST.replace("version: 0.1.0\n", "")}),
    Broken("manifest", "has no description", files={"plugin.yaml": "name: my-notes\nversion: 1.0.0\n"}),
    Broken(
        "manifest",
        "which pip cannot install",
        files={"plugin.yaml": MANIFEST + "pip_dependencies: ['not a name']  # here\n"},
    ),
    Broken("manifest", "is no list", files={"plugin.yaml": MANIFEST + "requires_env: ABC  # here\n"}),
    Broken(
        "manifest",
        "nothing reads",
        files={"plugin.yaml": MANIFEST + "pip_dependency: []  # here\n"},
        severity="warning",
    ),
    Broken(
        "manifest",
        "cannot be read",
        files={"plugin.yaml": "name: my-notes\nhooks: ]  # here"},
        also=("hooks",),
    ),
    # -- readme
    Broken("readme", "missing or nearly empty", files={"README.md": "# my-notes\n"}),
    Broken("readme", "which parts of a turn leave the device", WITH_A_KEY, {"README.md": README}),
    Broken(
        "readme",
        "(it imports urllib.request)",
        "import urllib.request",
        {"README.md": README + "\n## What leaves this device\n\nSome things.\n"},
        severity="warning",
    ),
    Broken("readme", "does not mention the fields of the setup", WITH_A_KEY, severity="warning"),
    Broken(
        "readme",
        "tool calls and tool results",
        WITH_A_KEY + "def sync_turn(self, user, assistant, *, session_id='', messages=None):\n    pass\n",
        {"README.md": README + "\n## What leaves this device\n\nWhat the user said.  # here\n"},
        "warning",
        also=("stored",),
    ),
    # -- hooks
    Broken(
        "hooks",
        "declares on_delegation, which is not implemented",
        files={
            "plugin.yaml": MANIFEST.replace("[on_s", "[on_delegation, on_s") + "# here is not looked at\n"
        },
    ),
    Broken(
        "hooks",
        "declares on_sesion_end, which is no hook",
        files={"plugin.yaml": MANIFEST.replace("[on_s", "[on_sesion_end, on_s")},
    ),
    Broken(
        "hooks",
        "on_turn_start is implemented",
        "def on_turn_start(self, n, text):  # here\n    pass",
        {},
        "warning",
    ),
    # -- signatures
    Broken(
        "signatures",
        "missing a required argument: 'scope'",
        "def prefetch(self, query, *, scope):  # here\n    return ''",
        also=("starts",),
    ),
    Broken(
        "signatures",
        "does not take session_id",
        "def sync_turn(self, user, assistant):  # here\n    super().sync_turn(user, assistant)",
        severity="warning",
    ),
    # -- config-schema
    *(
        Broken(
            "config-schema",
            said,
            f"def get_config_schema(self):\n    return [\n        {field},  # here\n    ]",
        )
        for said, field in (
            ("field a: it has no description", '{"key": "a"}'),
            ("field b: the type 'date' is not known", '{"key": "b", "description": "B", "type": "date"}'),
            (
                "the default of c is left out",
                '{"key": "c", "description": "C", "choices": ["x"], "default": "y"}',
            ),
            (
                "field d: a secret has a default",
                '{"key": "d", "description": "D", "secret": True, "default": "s"}',
            ),
            (
                "field e: the minimum 5 is above",
                '{"key": "e", "description": "E", "minimum": 5, "maximum": 1}',
            ),
            ("field f: when names 'g'", '{"key": "f", "description": "F", "when": {"g": 1}}'),
            ("PATH", '{"key": "h", "description": "H", "secret": True, "env_var": "PATH"}'),
            ("'descripton' is not known", '{"key": "i", "descripton": "I"}'),
        )
    ),
    # -- availability
    Broken(
        "availability",
        "asks the network (example.com)",
        """
        def is_available(self):
            import urllib.request
            urllib.request.urlopen("http://example.com", timeout=3)  # here
            return True
        """,
        also=(
            "starts",
            "tool-results",
            "stored",
            "session-switch",
            "storage",
            "profiles",
            "secrets",
            "shutdown",
        ),
    ),
    Broken(
        "availability",
        "asks the network (127.0.0.1:9)",
        """
        def is_available(self):
            import socket
            try:
                socket.create_connection(("127.0.0.1", 9))  # here
            except OSError:
                pass
            return True
        """,
    ),
    Broken(
        "availability",
        "raises before its setup",
        "def is_available(self):\n    return self.nothing  # here",
        also=("starts",),
    ),
    Broken(
        "availability",
        "unavailable_reason says nothing",
        "def is_available(self):  # here\n    return False",
        {},
        "warning",
    ),
    # -- starts
    Broken(
        "starts",
        "initialize raises KeyError",
        "def initialize(self, session_id, **kwargs):\n    kwargs['nowhere']  # here",
    ),
    Broken(
        "starts",
        "prefetch returns list",
        "def prefetch(self, query, *, session_id=''):  # here\n    return ['x']",
    ),
    Broken(
        "starts",
        "on_pre_compress raises",
        "def on_pre_compress(self, messages):\n    return messages[99]  # here",
    ),
    # -- tools
    Broken(
        "tools",
        "belongs to the agent itself",
        """
        def get_tool_schemas(self):
            parameters = {"type": "object"}
            return [{"name": "memory", "description": "x", "parameters": parameters}]  # here
        """,
    ),
    Broken(
        "tools",
        "requires 'words', which is no property",
        """
        def get_tool_schemas(self):
            [schema] = super().get_tool_schemas()
            schema["parameters"]["required"] = ["words"]
            return [schema]
        """,
        also=("tool-results",),
    ),
    Broken(
        "tools",
        "names the tool my_notes_drop",
        files={"plugin.yaml": MANIFEST.replace("[my_notes_search]", "[my_notes_drop]  # here")},
    ),
    Broken(
        "tools",
        "the tools change with the start",
        "def get_tool_schemas(self):  # here\n    return super().get_tool_schemas() if self._store else []",
        {},
        "warning",
        also=("tools",),
    ),
    # -- tool-results
    Broken(
        "tool-results",
        "text that is no JSON",
        "def handle_tool_call(self, tool_name, args):  # here\n    return 'found nothing'",
    ),
    Broken(
        "tool-results",
        "answers with dict",
        "def handle_tool_call(self, tool_name, args):  # here\n    return {}",
    ),
    Broken(
        "tool-results",
        "raises LookupError",
        "def handle_tool_call(self, tool_name, args):\n    raise LookupError('x')  # here",
    ),
    # -- accepted
    Broken(
        "accepted",
        "has not returned after 2 s",
        """
        delivery = "accepted"
        def sync_turn(self, user, assistant, *, session_id=""):
            import socket
            try:
                socket.create_connection(("192.0.2.1", 80), timeout=9)  # here
            except OSError:
                pass
        """,
    ),
    Broken(
        "accepted",
        "raises OSError although it only accepts",
        """
        delivery = "accepted"
        def sync_turn(self, user, assistant, *, session_id=""):
            raise OSError("no")  # here
        """,
        also=("starts",),
    ),
    # -- stored
    Broken(
        "stored",
        "returns although its backend is down",
        """
        def sync_turn(self, user, assistant, *, session_id="", **kwargs):  # here
            try:
                super().sync_turn(user, assistant, session_id=session_id)
            except Exception:
                pass
        """,
    ),
    Broken(
        "stored",
        "is not found by another process",
        """
        def sync_turn(self, user, assistant, *, session_id="", **kwargs):  # here
            self.later = getattr(self, "later", []) + [(user, assistant, session_id)]
            self._store._path.parent.mkdir(exist_ok=True)
            self._store._path.with_name("mark").write_text("waits")
        def shutdown(self):
            for user, assistant, session_id in getattr(self, "later", []):
                super().sync_turn(user, assistant, session_id=session_id)
            super().shutdown()
        """,
        {},
        also=("starts", "session-switch", "storage", "secrets", "shutdown", "tool-results", "profiles"),
    ),
    # -- session-switch
    Broken(
        "session-switch",
        "is filed under conformance-session-1",
        """
        def on_session_switch(self, new_session_id, **kwargs):  # here
            pass
        def sync_turn(self, user, assistant, **kwargs):
            super().sync_turn(user, assistant, session_id=self._session_id)
        """,
    ),
    Broken(
        "session-switch",
        "raises TypeError",
        """
        def on_session_switch(self, new_session_id, *, rewound=False, **kwargs):
            if rewound:
                raise TypeError("what is undo?")  # here
            super().on_session_switch(new_session_id, **kwargs)
        """,
        also=("starts",),
    ),
    # -- storage
    Broken(
        "storage",
        "writes to ~/.my-notes/log",
        """
        def initialize(self, session_id, **kwargs):
            super().initialize(session_id, **kwargs)
            Path("~/.my-notes").expanduser().mkdir(exist_ok=True)
            (Path.home() / ".my-notes" / "log").write_text("x")  # here
        """,
    ),
    Broken(
        "storage",
        "writes to ./notes.txt",
        "def system_prompt_block(self):\n    Path('notes.txt').write_text('x')  # here\n    return ''",
    ),
    Broken(
        "storage",
        "which backup_paths names",
        """
        def initialize(self, session_id, **kwargs):
            super().initialize(session_id, **kwargs)
            (Path.home() / "my-notes.log").write_text("x")  # here
        def backup_paths(self):
            return ["~/my-notes.log"]
        """,
        severity="warning",
    ),
    # -- profiles
    Broken(
        "profiles",
        "(another process)",
        """
        def initialize(self, session_id, **kwargs):
            super().initialize(session_id, **kwargs)
            self._store = Store(Path.home() / "shared.db")
        """,
        also=("storage",),
    ),
    Broken(
        "profiles",
        "(the same process)",
        """
        heard = []
        def sync_turn(self, user, assistant, *, session_id="", **kwargs):
            super().sync_turn(user, assistant, session_id=session_id)
            self.heard.append(assistant)
        def prefetch(self, query, *, session_id=""):  # here
            return " ".join(self.heard)
        """,
    ),
    # -- secrets
    Broken(
        "secrets",
        "a key is printed",
        WITH_A_KEY
        + """
def initialize(self, session_id, **kwargs):
    super().initialize(session_id, **kwargs)
    print("with", os.environ["MY_NOTES_TOKEN"])  # here
""",
    ),
    Broken(
        "secrets",
        "a key is logged",
        WITH_A_KEY
        + """
def shutdown(self):
    super().shutdown()
    logging.getLogger("notes").debug("%s", os.environ["MY_NOTES_TOKEN"])  # here
""",
    ),
    Broken(
        "secrets",
        "repr() of the provider shows a key",
        WITH_A_KEY + "def __repr__(self):  # here\n    return f\"MyNotes({os.environ['MY_NOTES_TOKEN']})\"",
    ),
    Broken(
        "secrets",
        "my_notes_search shows a key",
        WITH_A_KEY
        + """
def handle_tool_call(self, tool_name, args):  # here
    return json.dumps({"key": os.environ["MY_NOTES_TOKEN"]})
""",
    ),
    Broken(
        "secrets",
        "a key stands in my-notes/state.txt",
        WITH_A_KEY
        + """
def on_session_end(self, messages):
    self._store._path.with_name("state.txt").write_text(os.environ["MY_NOTES_TOKEN"])  # here
""",
    ),
    # -- shutdown
    Broken(
        "shutdown",
        "the thread 'counter' runs on",
        """
        def initialize(self, session_id, **kwargs):
            super().initialize(session_id, **kwargs)
            threading.Thread(target=self._count, name="counter", daemon=True).start()
        def _count(self):
            threading.Event().wait()  # here
        """,
    ),
    Broken(
        "shutdown",
        "my-notes/log is open after shutdown",
        """
        def on_turn_start(self, number, text):
            self._store._path.parent.mkdir(exist_ok=True)
            self._log = (self._store._path.parent / "log").open("w")  # here
        """,
    ),
    Broken(
        "shutdown",
        "a program that it started runs on",
        "def on_turn_start(self, number, text):\n    subprocess.Popen(['sleep', '60'], start_new_session=True)  # here",
    ),
    Broken(
        "shutdown",
        "shutdown raises",
        "def shutdown(self):\n    raise OSError('still busy')  # here",
        also=("starts", "session-switch"),
    ),
    # -- cli
    Broken(
        "cli",
        "cli.py gives no tree: ZeroDivisionError",
        files={"cli.py": "def register_cli(parser):\n    1 / 0  # here\n"},
    ),
    Broken(
        "cli",
        "cannot be shown",
        files={
            "cli.py": "def register_cli(parser):\n    parser.add_argument('x', help='100 % of it')  # here\n"
        },
    ),
    Broken(
        "cli",
        "hermes my-notes status has no handler",
        files={
            "cli.py": "def register_cli(parser):  # here\n    parser.add_subparsers().add_parser('status')\n"
        },
    ),
    # -- a process that dies
    Broken(
        "starts",
        "the process exited",
        "def on_turn_start(self, number, text):\n    os._exit(3)",
        also=tuple(CHECKS),
    ),
]


def write(broken: Broken, folder: Path) -> Examination:
    """The broken provider, in *folder*."""
    scaffold.write("my-notes", folder)
    place = folder / "my-notes"
    if broken.members:
        members = textwrap.indent(textwrap.dedent(broken.members), "    ")
        code = (place / "__init__.py").read_text()
        wrong = f"import logging, os, subprocess, threading\nclass Wrong(MyNotes):\n{members}\n\ndef register"
        code = code.replace("def register", wrong).replace("r(MyNotes())", "r(Wrong())")
        (place / "__init__.py").write_text(code)
    for name, text in broken.files.items():
        if text is None:
            (place / name).unlink()
        else:
            (place / name).write_text(text)
    return Examination(plugin_in(place))
