"""From branches to a stack of trees: what is read, compared, ordered and picked, without running anything."""
