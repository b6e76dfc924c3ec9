"""``hermes memory``: what is remembered."""

from hermes.cli.lazy import lazy_app

app = lazy_app(
    {
        "status": (
            "hermes.cli.memory.status:status",
            "Show what is remembered, where, and whether all is well.",
        ),
        "list": ("hermes.cli.memory.entries:list_entries", "List the built-in entries."),
        "add": ("hermes.cli.memory.entries:add", "Remember something yourself."),
        "replace": ("hermes.cli.memory.entries:replace", "Put a new text in the place of an entry."),
        "remove": ("hermes.cli.memory.entries:remove", "Forget an entry, everywhere in this profile."),
        "undo": ("hermes.cli.memory.entries:undo", "Take back the last change of the built-in entries."),
        "pending": ("hermes.cli.memory.approval:pending", "List the writes that wait for you."),
        "approve": ("hermes.cli.memory.approval:approve", "Let waiting writes happen."),
        "reject": ("hermes.cli.memory.approval:reject", "Drop waiting writes."),
        "search": ("hermes.cli.memory.recall:search", "Search everything that is remembered."),
        "recall": (
            "hermes.cli.memory.recall:recall",
            "Print exactly what a model would be given for a question.",
        ),
        "ingest": ("hermes.cli.memory.ingest:ingest", "Take in conversations from files or standard input."),
        "export": ("hermes.cli.memory.export:export", "Print everything that is remembered as JSON Lines."),
        "off": ("hermes.cli.memory.reset:off", "Use no memory provider; what it stored stays."),
        "reset": ("hermes.cli.memory.reset:reset", "Delete what is remembered."),
        "journal": ("hermes.cli.memory.journal:app", "What is still owed to the memory provider."),
        "doctor": ("hermes.cli.doctor:doctor", "Try everything out, and say what to do about what fails."),
    },
    "What is remembered: status, entries, recall, import and export.",
)
