"""The embedding table of ctx for other tools, in the way of OpenAI's API.

The tools that embed text want a model from the network. With this they get the same vectors as ctx,
so a comparison shows what each of them does with vectors, not which model is better.
"""

import base64
from typing import Any

from ctx.search import embedders


class TableEmbeddings:
    def __init__(self) -> None:
        self._table = embedders.default()
        self.dimensions = self._table.dimensions

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        given = request["input"]
        vectors = self._table.embed([given] if isinstance(given, str) else given)
        if request.get("encoding_format") == "base64":
            written = [base64.b64encode(each.astype("<f4").tobytes()).decode() for each in vectors]
        else:
            written = vectors.tolist()
        data = [
            {"object": "embedding", "index": place, "embedding": vector}
            for place, vector in enumerate(written)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "data": data, "model": "static", "usage": usage}
