"""``hermes memory``: what is remembered."""

from hermes.cli.lazy import lazy_app

app = lazy_app(
    {
        "status": (
            "hermes.cli.memory.status:status",
            "Show what is remembered, where, and whether all is well.",
        ),
        "setup": (
            "hermes.cli.memory.setup:setup",
            "Choose a memory provider, answer what it asks, and try whether it works.",
        ),
        "list": (
            "hermes.cli.memory.entries:list_entries",
            "List the built-in entries with their ids, those included that are kept from the model.",
        ),
        "add": ("hermes.cli.memory.entries:add", "Remember something yourself."),
        "replace": (
            "hermes.cli.memory.entries:replace",
            "Put a new text in the place of a whole entry; what it said is printed.",
        ),
        "remove": ("hermes.cli.memory.entries:remove", "Forget an entry, everywhere in this profile."),
        "undo": (
            "hermes.cli.memory.entries:undo",
            "Take back the last change of the built-in entries, whoever made it.",
        ),
        "pending": ("hermes.cli.memory.approval:pending", "List the writes that wait for you, oldest first."),
        "approve": (
            "hermes.cli.memory.approval:approve",
            "Let waiting writes happen, each for itself; one that cannot be carried out stays and says why.",
        ),
        "reject": ("hermes.cli.memory.approval:reject", "Drop waiting writes."),
        "search": (
            "hermes.cli.memory.recall:search",
            "Search everything that is remembered: the built-in entries, then what the provider stores.",
        ),
        "recall": (
            "hermes.cli.memory.recall:recall",
            "Print exactly what a model would be given for a question, and how long it took.",
        ),
        "ingest": (
            "hermes.cli.memory.ingest:ingest",
            "Take in conversations and memories of other programs, or your own as JSON Lines.",
        ),
        "export": (
            "hermes.cli.memory.export:export",
            "Print everything that is remembered as JSON Lines: built-in entries, then what the provider stores.",
        ),
        "off": (
            "hermes.cli.memory.reset:off",
            "Use no memory provider; what it stored stays, and the built-in memory goes on.",
        ),
        "reset": (
            "hermes.cli.memory.reset:reset",
            "Delete what is remembered, with its history, backups, pending writes and undelivered records.",
        ),
        "journal": ("hermes.cli.memory.journal:app", "What is still owed to the memory provider."),
        "doctor": ("hermes.cli.doctor:doctor", "Try everything out, and say what to do about what fails."),
    },
    "What is remembered: status, entries, recall, import and export.",
)
