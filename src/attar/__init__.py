"""Attar."""
