"""neo used hard for long: many threads and modules, cancellations, forks, memory that runs out (docs/soak.md)."""
