"""What servers ask their clients: put to whom it is for, in the way of the client's era, or refused."""
