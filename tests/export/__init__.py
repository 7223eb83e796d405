"""Round trips: real servers' names exported, another gateway started, its list compared, every tool called."""
