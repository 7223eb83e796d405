"""The transports to servers: streamable HTTP, HTTP with SSE, standard input and output."""
