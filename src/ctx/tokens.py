"""How much of a model's window a text takes. One estimate for the whole product."""


def estimate(text: str) -> int:
    """ASCII characters by 3.5, rounded up, and one token for every other character.

    Conservative by intent: real tokenizers need fewer for English and code, and about one
    for each CJK character.
    """
    ascii_count = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return -(-ascii_count * 2 // 7) + len(text) - ascii_count
