"""Readers, one file for each format; ``attar.data.load`` picks."""
