"""What is wrong with the tools that a team declares: sources read, rules run, findings weighed."""
