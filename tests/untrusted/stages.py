"""How far a damaged model gets."""

__all__ = ["STAGES"]

#: In order. `file`: it does not parse; `parse`: opsets, inputs or initializers are refused; `import`: a node is; then
#: the stages of neo.compile in which a model is refused; `run`: the call is; `ran`: it gave results.
STAGES = ("file", "parse", "import", "passes", "select", "lower", "run", "ran")
