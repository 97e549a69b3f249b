"""The app whose runs the scenarios break. It imports nothing else of the mapping."""
