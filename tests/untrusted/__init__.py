"""Models nobody trusts: damaged, hostile and too large ones."""
