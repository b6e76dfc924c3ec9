"""Bundled memory providers, a folder each."""
