"""How names change: what differs, a plan, its application everywhere at once, and the way back."""
