"""Compiled inner loops. Nothing here knows the rest of the library; nothing here checks its arguments."""
