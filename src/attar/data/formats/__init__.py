"""Readers, one file per format; ``attar.data.load`` chooses one."""
