"""Conflicts that no rule solves: their work dirs, the agents that are asked, and what was decided."""
