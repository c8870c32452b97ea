"""Compiled inner loops. They import nothing else of the library and do not check their arguments."""
