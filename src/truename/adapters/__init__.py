"""Adapt Truename to model APIs and agent frameworks: one small module each, imported only on request.

The model APIs (`openai_chat`, `openai_responses`, `anthropic`, `gemini`, `bedrock`) are modules of one shape, which
`truename.adapters.wire.Api` spells out: ``tools``, ``tool_choice``, ``calls``, ``read`` and ``result``. They work on
plain dictionaries in the API's own shape and need none of the providers' libraries. `history` carries recorded
conversations over a rename or to another provider.
"""
