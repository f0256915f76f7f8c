"""Bayesian pseudo-coresets; one file per objective."""
