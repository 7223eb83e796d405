"""extreme.py: answers that no parser takes, under ids that are none, and floods of what a server may say unasked."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.gateway.servers.fake import Fake, send, tool

Answer = Callable[[dict[str, Any], Any], None]

VALUES: Final[Mapping[str, str]] = {
    "deep": "[" * 150 + "]" * 150,
    "deeper": "[" * 250 + "]" * 250,
    "deepest": "[" * 100_000 + "]" * 100_000,
    "nan": "NaN",
    "infinite": "1e999",
    "long": "9" * 4_000,
    "longest": "9" * 5_000,
    "half": r'"\ud83d"',
    "twice": '1, "x": 2',
}
IDS: Final[Mapping[str, str]] = {
    "float_id": "1.5",
    "null_id": "null",
    "true_id": "true",
    "long_id": "9" * 4_000,
    "longest_id": "9" * 5_000,
    "object_id": "{}",
    "text_id": '"other"',
}
FLOODS: Final[Mapping[str, Callable[[int, Any], dict[str, Any]]]] = {
    "progress": lambda n, token: {
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": n},
    },
    "logs": lambda n, _: {"method": "notifications/message", "params": {"level": "info", "data": n}},
    "changes": lambda *_: {"method": "notifications/tools/list_changed"},
    "updates": lambda n, _: {"method": "notifications/resources/updated", "params": {"uri": f"x://{n}"}},
    "unknown": lambda n, _: {"method": "notifications/nothing", "params": {"n": n}},
    "questions": lambda n, _: {
        "id": n,
        "method": "elicitation/create",
        "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
    },
    "requests": lambda n, _: {"id": n, "method": "no/thing"},
}
_MESSAGES: Final = 1_500


def _answer(id: Any, text: str, more: str = "") -> None:
    result = f'{{"content": [{{"type": "text", "text": "{text}"}}]{more}}}'
    sys.stdout.write(f'{{"jsonrpc":"2.0","id":{id},"result":{result}}}\n')
    sys.stdout.flush()


def _value(value: str) -> Answer:
    return lambda _, id: _answer(id, "answered", f', "structuredContent": {{"x": {value}}}')


def _under(wrong: str) -> Answer:
    def answer(_: dict[str, Any], id: Any) -> None:
        _answer(wrong, "wrong")
        _answer(id, "answered")
        _answer(id, "again")

    return answer


def _flood(message: Callable[[int, Any], dict[str, Any]]) -> Answer:
    def answer(params: dict[str, Any], id: Any) -> None:
        token = (params.get("_meta") or {}).get("progressToken")
        for number in range(_MESSAGES):
            send(message(number, token))
        _answer(id, "answered")

    return answer


if __name__ == "__main__":
    answers = {name: _value(value) for name, value in VALUES.items()}
    answers |= {name: _under(id) for name, id in IDS.items()}
    answers |= {name: _flood(message) for name, message in FLOODS.items()}
    server = Fake("extreme", [tool(name) for name in answers])
    server.calls |= answers
    server.run()
