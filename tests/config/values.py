"""Strategies for the values that a setting accepts."""

from hypothesis import strategies as st

from ctx.config.setting import Setting, Value

_TEXTS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20)


_PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)


def _is_short(text: str) -> bool:
    return len(text) < 100


def values_of(known: Setting) -> st.SearchStrategy[Value]:
    match known.kind:
        case "flag":
            # What an older file may ask for in vain is not written any more.
            return st.sampled_from([v for v in (True, False) if v not in known.older])
        case "whole":
            return st.integers(int(known.low), int(known.high))
        case "number":
            return st.floats(known.low, known.high)
        case "text" if known.starts:
            return st.builds(str.__add__, st.sampled_from(known.starts), _TEXTS)
        case "text" if known.form:
            return st.from_regex(known.form, fullmatch=True, alphabet=_PRINTABLE)
        case "text":
            return _TEXTS
        case "texts" if known.form:
            return st.lists(
                st.from_regex(known.form, fullmatch=True, alphabet=_PRINTABLE).filter(_is_short),
                max_size=4,
            ).map(tuple)
        case "texts":
            return st.lists(_TEXTS, max_size=4).map(tuple)
        case "choice":
            return st.sampled_from(known.choices)
