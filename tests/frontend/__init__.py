"""Reading models of other tools."""
