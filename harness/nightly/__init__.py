"""A night of chaos in CI: a plan of cells, their execution, and what CI systems and people read about it."""
