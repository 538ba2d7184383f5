"""How far measured times of steps lie from their estimates, on networks that nobody tuned for."""
