"""Programs that several gateway processes share: one of them runs the program, the others reach it through that one."""
