"""Shared foundations: errors, files, cost, the registry of methods."""
