"""Kept for tests that version 0.1 wrote; scenarios are in `language`, and what a search found in `exploration`."""
