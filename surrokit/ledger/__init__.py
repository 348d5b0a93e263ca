"""Ledgers: files that hold all exact evaluations of a run, and what it takes to go on with it."""
