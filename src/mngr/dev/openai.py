"""What OpenAI's two protocols have in common."""

from __future__ import annotations

from mngr.dev.exchange import Item, Json, Usage, key_of

_ERRORS = {
    400: ("invalid_request_error", "invalid_request"),
    401: ("invalid_request_error", "invalid_api_key"),
    429: ("requests", "rate_limit_exceeded"),
}


def conversation(body: Json, items: list[Item]) -> str:
    return str(body.get("prompt_cache_key") or key_of(items))


def counted(usage: Usage) -> Usage:
    return {**usage, "cache_write_5m": 0, "cache_write_1h": 0}


def error(status: int, message: str) -> Json:
    kind, code = _ERRORS.get(status, ("server_error", "server_error"))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
