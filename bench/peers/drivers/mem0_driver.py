"""mem0 as a library: each text is added as it is (`infer=False`), so no model is asked."""

import os
from typing import Any

from json_lines import serve  # type: ignore[import-not-found]
from mem0 import Memory  # type: ignore[import-not-found]

USER = "bench"


def main() -> None:
    address, dimensions = os.environ["OPENAI_BASE_URL"], int(os.environ["BENCH_DIMENSIONS"])
    home = os.environ["HOME"]
    store = {"path": f"{home}/qdrant", "on_disk": True, "embedding_model_dims": dimensions}
    embedder = {
        "model": "static", "api_key": "none", "openai_base_url": address,
        "embedding_dims": dimensions,
    }  # fmt: skip
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": store},
            "embedder": {"provider": "openai", "config": embedder},
            "history_db_path": f"{home}/history.db",
        }
    )

    def answer(request: dict[str, Any]) -> list[str]:
        if request["do"] == "add":
            named = {"unit": request["unit"]}
            memory.add(request["text"], user_id=USER, metadata=named, infer=False)
            return []
        found = memory.search(
            request["text"], top_k=request["limit"], threshold=0.0, filters={"user_id": USER}
        )
        return [each["metadata"]["unit"] for each in found["results"]]

    serve(answer)


if __name__ == "__main__":
    main()
