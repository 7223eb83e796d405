"""What several test modules share: servers, clients, configurations and checks."""
