"""Adapt Truename to model APIs and agent frameworks: one small module each, imported only on request.

The model APIs (`openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bedrock`) are modules with one interface,
`truename.adapters.wire.Api`: ``tools``, ``tool_choice``, ``calls``, ``read`` and ``result``. They use plain
dictionaries in the API's own format and need none of the providers' libraries. `history` rewrites recorded
conversations after a rename or for another provider.
"""
