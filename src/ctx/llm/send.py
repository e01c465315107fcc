"""The one door to a model: nothing is sent that redaction has not passed."""

from ctx.llm.protocol import Answer, Backend, Meter, OnToken, Request, ignore
from ctx.redaction import redact


def ask(backend: Backend, request: Request, meter: Meter, on_token: OnToken = ignore) -> Answer:
    """What the model answers to a question, in which the secrets are taken out."""
    return backend.ask(without_secrets(request), meter, on_token)


def without_secrets(request: Request) -> Request:
    parts = tuple(redact(part).text for part in request.parts)
    whole = redact(request.prompt).text
    if "".join(parts) != whole:
        # A secret that goes on in the next part is only seen in the whole.
        parts = (whole,)
    return request._replace(system=redact(request.system).text, parts=parts)
