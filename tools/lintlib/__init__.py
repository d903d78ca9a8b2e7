"""The checks of tools/lint.py: one function each, in CHECKS of every module."""
