"""Trust at the gateway: what servers list is admitted before it is named, shown or called."""
