"""The files that ``hermes plugins new`` writes; a provider called my-notes."""
