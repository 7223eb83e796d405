"""How good the names are that a catalogue gets, measured on the open collection of real tools."""
