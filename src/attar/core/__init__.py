"""What everything stands on: errors, files, cost, the registry of methods."""
