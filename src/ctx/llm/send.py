"""The only way to send a request to a model: secrets are redacted first."""

from ctx.llm.protocol import Answer, Backend, Meter, OnToken, Request, ignore
from ctx.redaction import redact


def ask(backend: Backend, request: Request, meter: Meter, on_token: OnToken = ignore) -> Answer:
    """Ask a model, with the secrets in the request redacted."""
    return backend.ask(without_secrets(request), meter, on_token)


def without_secrets(request: Request) -> Request:
    parts = tuple(redact(part).text for part in request.parts)
    whole = redact(request.prompt).text
    if "".join(parts) != whole:
        # Only the whole text shows a secret that spans two parts.
        parts = (whole,)
    return request._replace(system=redact(request.system).text, parts=parts)
