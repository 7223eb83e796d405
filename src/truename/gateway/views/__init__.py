"""What is shown: lists under the names of one client, and what a name, a text and a URI of it mean."""
