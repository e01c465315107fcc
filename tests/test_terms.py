"""The terms of a text, and that FTS5 finds them in every spelling."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctx import terms
from tests import effort

EXAMPLES = [
    # Identifiers: the parts, then the whole.
    ("refreshToken", "refresh token refreshtoken"),
    ("RefreshToken", "refresh token refreshtoken"),
    ("refresh_token", "refresh token refreshtoken"),
    ("refresh-token", "refresh token refreshtoken"),
    ("REFRESH_TOKEN", "refresh token refreshtoken"),
    ("refresh_tokens", "refresh token refreshtoken"),
    ("refresh token", "refresh token"),
    ("refreshtoken", "refreshtoken"),
    ("HTTPServer", "http server httpserver"),
    ("getHTTPResponse", "get http respons gethttprespons"),
    ("XMLHttpRequest", "xml http request xmlhttprequest"),
    ("userIDs parseURLsFast", "user id userid pars url fast parseurlsfast"),
    ("OAuth GitHub", "o auth oauth git hub github"),
    ("__init__ _private --dry-run", "init privat dry run dryrun"),
    # Digits belong to the letters before them.
    ("utf8 UTF-8 sha256 SHA_256 v2", "utf8 utf 8 utf8 sha256 sha 256 sha256 v2"),
    ("h264Decoder base64Encode", "h264 decoder h264decoder base64 encod base64encode"),
    ("base64URL Win32API", "base64 url base64url win32 api win32api"),
    ("HTTP2Server 2FA", "http2 server http2server 2 fa 2fa"),
    ("Point2D Vec3DArray E2ETest", "point2d vec3d array vec3darray e2e test e2etest"),
    ("i18n I18N k8s x86_64", "i18n i18n k8s x86 64 x8664"),
    ("3.14 42 0xff", "3 14 42 0xff"),
    ("2024-05-17", "2024 05 17 20240517"),
    # Paths, addresses, prose around code: the natural splits.
    ("os.path.join std::fs::File", "os path join std fs file"),
    ("src/ctx/test_terms.py", "src ctx test term testterm py"),
    ("C:\\Temp\\a.txt", "c temp a txt"),
    ("https://example.org/a?page=2#top", "https exampl org a page 2 top"),
    ("jane.doe+ctx@example.org", "jane doe ctx exampl org"),
    ("def f(x: int) -> list[str]:", "def f x int list str"),
    ("the user's tokens, don't", "the user s token don t"),
    # Accents and case.
    ("Café naïve Zürich Łódź", "cafe naiv zurich lodz"),
    ("Straße GROẞ smørrebrød Ægir œuvre", "strass gross smorrebrod aegir oeuvr"),
    ("cafe\u0301", "cafe"),
    ("İstanbul ısı", "istanbul isi"),
    ("größeÄndern", "gross andern grosseandern"),
    ("Ёлка ТокенДоступа", "елка токен доступа токендоступа"),
    ("Ὀδυσσεύς ΟΔΟΣ", "οδυσσευσ οδοσ"),
    ("ＡＰＩ ﬁle ① x²", "api file 1 x2"),
    ("soft\u00adhyphen zero\u200bwidth", "softhyphen zero width"),
    # Scripts without spaces between words, and Hangul.
    ("リフレッシュ", "リフ フレ レッ ッシ シュ"),
    ("ﾘﾌﾚｯｼｭ ｶﾞﾊﾟ", "リフ フレ レッ ッシ シュ ガパ"),
    ("ガ か\u3099", "ガ が"),
    ("更 更新", "更 更新"),
    ("設定は、ファイルから", "設定 定は ファ ァイ イル ルか から"),
    ("Pythonで書くrefreshToken", "python で書 書く refresh token refreshtoken"),
    ("𠮷野家", "𠮷野 野家"),
    ("토큰을 갱신", "토큰 큰을 갱신"),
    ("กินข้าว", "กิน นข้ ข้า าว"),
    # Scripts whose marks tell words apart keep them; digits are digits.
    ("हिन्दी", "हिन्दी"),
    ("مُحَمَّد", "مُحَمَّد"),
    ("שָׁלוֹם", "שָׁלוֹם"),
    ("٣٤ १२", "34 12"),
    # What is no word.
    ("", ""),
    (" \t\n\0", ""),
    ("--- ___ -_- ++ && ====", ""),
    ("👍🏽 ❤️ 🇪🇺 👩‍💻 → ∑", ""),
    ("1️⃣", "1"),
    ("\ud800 a\udfffb", "a b"),
    ("\u093f", ""),
    # Hashes and encoded data.
    ("da39a3ee5e6b4b0d3255bfef95601890afd80709", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ("DA39A3EE5E6B4B0D3255BFEF95601890AFD80709", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ("sha256:" + "a1B2" * 16, "sha256 " + "a1b2" * 16),
    ("a1B2" * 40, "a1b2" * 16),
    ("x" * 100, "x" * 64),
    ("test_that_" * 10, "test that " * 10 + ("testthat" * 10)[:64]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), EXAMPLES)
def test_text_becomes_terms(text: str, expected: str) -> None:
    assert terms.extract(text) == expected.split()
    assert terms.column(text) == expected.strip()


INFLECTIONS = """
use uses used using | token tokens | class classes | process processes processed processing |
bus buses | status statuses | cache caches cached caching | parse parses parsed parsing |
note notes noted noting | query queries queried querying | cookie cookies | tie ties tied |
add adds added adding | stop stops stopped stopping | commit commits committed committing |
install installs installed installing | control controls controlled controlling |
cancel cancels canceled cancelled cancelling | call calls called calling |
create creates created creating | update updates updated updating |
handle handles handled handling | store stores stored storing | override overrides overriding |
enable enables enabled enabling | queue queues queued queuing queueing |
route routes routed routing | issue issues issued | fix fixes fixed fixing |
embed embeds embedded embedding | index indexes indices indexed indexing | alias aliases aliased |
string strings | substring substrings | setting settings | id ids | api apis | recent recently |
manual manually | automatic automatically | complete completed completely
"""


@pytest.mark.parametrize("forms", INFLECTIONS.split("|"))
def test_inflections_share_a_stem(forms: str) -> None:
    assert len({terms.stem(form) for form in forms.split()}) == 1


DIFFERENT = """
not note | us use | new news | set setting | plan plane | hop hope | car care | pip pipe |
mod mode | str string | sing single singleton | http https | window windows | even evening |
on only | read readonly | fill file | general generate | integer integrate | organ organize |
universe university | stat status station | pars parse | analysis analyst | thing this
"""


@pytest.mark.parametrize("different", DIFFERENT.split("|"))
def test_different_words_have_different_stems(different: str) -> None:
    words = different.split()
    assert len({terms.stem(word) for word in words}) == len(words)


UNCHANGED = """
bus class process string this redis sing status analysis kubernetes https axios use file user
access address canvas express js css dns pandas ring thing spring need feed speed exceed
family apply reply assembly early only during series queue tree sha256s größe
"""


@pytest.mark.parametrize("word", UNCHANGED.split())
def test_words_that_only_look_inflected_are_unchanged(word: str) -> None:
    assert terms.stem(word) == word


def test_an_identifier_is_split_without_stems() -> None:
    assert terms.split_identifier("parsedURLs_fromCache") == ["parsed", "urls", "from", "cache"]
    assert terms.split_identifier("src/HTTPServer.py") == ["src", "http", "server", "py"]
    assert terms.split_identifier("ÄndereGröße") == ["andere", "grosse"]
    assert terms.split_identifier("__") == []


def test_a_query_has_each_term_once_and_stop_words_only_if_there_are_no_others() -> None:
    assert terms.query("how do we handle the refresh token?") == ["handl", "refresh", "token"]
    assert terms.query("To be, or not to be") == ["to", "be", "or", "not"]
    assert terms.query("toString") == ["string", "tostring"]
    assert terms.query("?!") == []
    every = terms.query("token TOKEN Tokens refreshToken refresh_token")
    assert every == ["token", "refresh", "refreshtoken"]


def test_alternatives_are_the_part_or_the_whole() -> None:
    found = terms.alternatives("is OAuth 更新中 ok")
    assert found == [("o", "oauth"), ("auth", "oauth"), ("更新",), ("新中",), ("ok",)]


def test_long_texts_take_linear_time() -> None:
    for text in ("1" * 200_000, "a" * 200_000, "1a" * 100_000, "_" * 200_000, "a-" * 50_000):
        terms.extract(text)


class FullText:
    """One row in an FTS5 table as in the stores."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("CREATE VIRTUAL TABLE rows USING fts5(terms)")
        self.db.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(rows, row)")

    def put(self, text: str) -> None:
        self.db.execute("DELETE FROM rows")
        self.db.execute("INSERT INTO rows VALUES (?)", (terms.column(text),))

    def finds(self, expression: str) -> bool:
        found = self.db.execute("SELECT count(*) FROM rows WHERE rows MATCH ?", (expression,))
        return bool(found.fetchone()[0])

    def finds_all_of(self, text: str) -> bool:
        groups = [" OR ".join(f'"{term}"' for term in group) for group in terms.alternatives(text)]
        return bool(groups) and self.finds("(" + ") AND (".join(groups) + ")")

    def vocabulary(self) -> set[str]:
        return {term for (term,) in self.db.execute("SELECT term FROM vocabulary")}


@pytest.fixture(scope="module")
def full_text() -> Iterator[FullText]:
    table = FullText()
    yield table
    table.db.close()


def characters(*blocks: str) -> st.SearchStrategy[str]:
    return st.one_of(
        [st.characters(min_codepoint=ord(b[0]), max_codepoint=ord(b[1])) for b in blocks]
    )


# SQLite's table of letters is older than Python's, so these are blocks that no longer change.
CJK = characters("ぁゖ", "ァヺ", "一龥", "가힣")
PLAIN = CJK | characters("\x00\x7f", "\x80\u024f", "\u0386\u03ff", "\u0400\u052f", "\u1e00\u1eff")
MARKED = characters("\u05b0\u05ea", "\u0620\u065f", "\u0900\u0950", "\u0e01\u0e3a", "\u1780\u17d3")
OTHER = characters("\u0300\u036f", "\u2000\u2bff", "\u3000\u3004", "\ufe00\ufe0f", "😀🙏")

quick = settings(
    max_examples=effort.times(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quick
@given(st.text(st.characters()))
def test_every_term_is_case_folded_and_one_word(text: str) -> None:
    for term in terms.extract(text):
        assert term
        assert term == term.casefold()
        assert term.split() == [term]
        assert term[0].isalnum()
        assert len(term) <= terms.LONGEST
    assert set(terms.query(text)) <= set(terms.extract(text))
    assert bool(terms.query(text)) == bool(terms.extract(text))


@quick
@given(st.text(PLAIN | MARKED | OTHER, max_size=60))
def test_a_row_is_found_by_each_term_and_by_all_terms(full_text: FullText, text: str) -> None:
    full_text.put(text)
    for term in terms.query(text):
        assert full_text.finds(f'"{term}"')
    assert full_text.finds_all_of(text) or not terms.extract(text)


@quick
@given(st.text(PLAIN, max_size=60))
def test_fts5_keeps_terms_unchanged(full_text: FullText, text: str) -> None:
    full_text.put(text)
    assert full_text.vocabulary() == set(terms.extract(text))


@quick
@given(st.lists(st.from_regex("[a-z]{2,8}[0-9]{0,2}", fullmatch=True), min_size=2, max_size=4))
def test_every_spelling_of_a_name_finds_the_others(words: list[str]) -> None:
    pascal = "".join(map(str.capitalize, words))
    joined = [
        pascal,
        words[0] + pascal[len(words[0]) :],
        "_".join(words),
        "-".join(words),
        "_".join(words).upper(),
        "-".join(map(str.capitalize, words)),
    ]
    apart = [" ".join(words), ".".join(words), "::".join(words), "/".join(words)]
    # Nothing says where a flat word could be cut: it meets only what joins to the same.
    flat = "".join(words)

    def finds(asked: str, content: str) -> bool:
        there = terms.extract(f"see {content}, please")
        return all(not set(group).isdisjoint(there) for group in terms.alternatives(asked))

    assert all(finds(a, b) for a in joined + apart for b in joined + apart)
    assert all(finds(flat, spelling) and finds(spelling, flat) for spelling in joined)


ENDINGS = ["", "s", "es", "ies", "ied", "ed", "ing", "ings", "ly", "ally", "ically", "e", "ie", "y"]


@quick
@given(st.from_regex("[a-z]{1,8}", fullmatch=True), st.sampled_from(ENDINGS))
def test_a_word_starts_with_the_beginning_of_its_stem(root: str, ending: str) -> None:
    word = root + ending
    assert word.startswith(terms.stem_prefix(terms.stem(word)))


@pytest.mark.parametrize("word", "axes children indices matrices queued queuing vertices".split())
def test_an_irregular_word_starts_with_the_beginning_of_its_stem(word: str) -> None:
    assert word.startswith(terms.stem_prefix(terms.stem(word)))


@quick
@given(st.data(), st.text(CJK, min_size=2, max_size=20))
def test_any_two_adjacent_characters_find_the_text(
    full_text: FullText, data: st.DataObject, run: str
) -> None:
    start = data.draw(st.integers(0, len(run) - 2))
    end = data.draw(st.integers(start + 2, len(run)))
    full_text.put(f"see {run}、refreshToken{run}")
    assert full_text.finds_all_of(run[start:end])


def test_a_single_character_finds_pairs_by_prefix(full_text: FullText) -> None:
    full_text.put("更新処理")
    assert not full_text.finds_all_of("処")
    assert full_text.finds("処*")


def test_the_cache_of_terms_is_bounded() -> None:
    remembered = terms._Terms()
    for number in range(remembered.SIZE + 10):
        assert remembered[f"word{number}"] == (f"word{number}",)
    assert remembered["x" * 1000] == ("x" * terms.LONGEST,)
    assert len(remembered) == 10
