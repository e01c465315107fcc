"""The words of a text, as search knows them.

Everything that is indexed and everything that is asked goes through this module, so that a
question and its answer meet whatever their spelling. A term is made of lower-case letters and
digits, and of vowel signs in the scripts that have them. SQLite's `unicode61` tokenizer keeps
it as it is, so terms may be stored as one text with spaces between them. One with vowel signs it
reads as a phrase, the same one every time, as long as the term is quoted in the question.

A word is a run of letters, digits, `_` and `-`; everything else separates.

* An identifier gives its parts and then the whole, joined: `refreshToken`, `refresh_token` and
  `refresh-token` all give `refresh token refreshtoken`. A digit belongs to the letters before
  it and begins nothing: `utf8`, `sha256` and `v2` are one part, `base64Encode` is two.
* An English word gives its stem, as a part and as a whole: `refresh_tokens` gives the same.
* Latin, Greek and Cyrillic letters lose case and accents. In other scripts the marks stay,
  because there they tell words apart.
* Scripts without spaces between words (Han, Kana, Thai, Khmer, …), and Hangul, whose words carry
  particles, give overlapping pairs of characters: any two neighbours find the text. A single
  character finds only where it stands alone; the FTS5 prefix `更*` also finds the pairs that
  begin with it.
* Hashes and encoded data are not split. No term is longer than `LONGEST`: the rest is cut off.
"""

import re
import unicodedata
from bisect import bisect
from collections import Counter
from functools import cache, lru_cache
from itertools import chain, groupby, pairwise
from posixpath import commonprefix

_SHORTEST_ENCODED = 32
LONGEST = 64  # A SHA-256 in hexadecimal. Nobody types more than this to find something again.


def extract(text: str) -> list[str]:
    """All terms in reading order, with repetitions. Common words are not left out."""
    return list(chain.from_iterable(map(_terms.__getitem__, words(text))))


def counts(text: str) -> dict[str, int]:
    """How often each term is in a text: what `extract` gives, counted."""
    found: dict[str, int] = {}
    for word, times in Counter(words(text)).items():
        for term in _terms[word]:
            found[term] = found.get(term, 0) + times
    return found


def words(text: str) -> list[str]:
    """The words of a text in reading order: each gives one or more terms."""
    if text.isascii():
        # Twice as fast as a pattern.
        return text.encode().translate(_WORDS_ONLY).decode().split()
    return _FOLDED_WORD.findall(_fold(text))


def terms_of_word(word: str) -> tuple[str, ...]:
    """The terms of one of the `words` of a text. It keeps nothing, for a caller with its own
    cache."""
    if word.isascii():
        if word.islower() and word.isalnum() and len(word) < _SHORTEST_ENCODED:
            # Most words have one part.
            return (stem(word),)
    elif len(runs := _runs(word)) > 1:
        return tuple(chain.from_iterable(map(_terms.__getitem__, runs)))
    elif _is_unspaced(word[0]):
        return _pairs(word)
    parts = split_identifier(word)
    # The search is quadratic in a long run of digits, so it does not look at all of it.
    if len(word) >= _SHORTEST_ENCODED and _ENCODED.search(word, 0, 256):
        parts = ["".join(parts)]
    elif len(parts) > 1:
        # Parts recur in many identifiers, so their stems are cached; that of the whole is not.
        whole = _uncached_stem("".join(parts)[:LONGEST])
        return (*[stem(part[:LONGEST]) for part in parts], whole)
    return tuple([stem(part[:LONGEST]) for part in parts])


def column(text: str) -> str:
    """The terms as they are written into a full-text column."""
    return " ".join(extract(text))


def query(text: str) -> list[str]:
    """The distinct terms to rank by: any of them speaks for a text, none of them is required."""
    return list(dict.fromkeys(chain.from_iterable(alternatives(text))))


def significant(text: str) -> frozenset[str]:
    """The terms of a text, without those that any text has."""
    return frozenset(query(text)) - STOP_WORDS


def alternatives(text: str) -> list[tuple[str, ...]]:
    """What a text must have to be about all of this: one term out of each group.

    `OAuth` gives `(o, oauth) (auth, oauth)`, so it asks for `o` and `auth`, or for `oauth`: the
    text may have any spelling. Stop words are dropped, unless there is nothing else.
    """
    groups: dict[tuple[str, ...], None] = {}
    for run in chain.from_iterable(map(_runs, words(text))):
        terms = _terms[run]
        if len(terms) == 1 or _is_unspaced(run[0]):
            groups.update(((term,), None) for term in terms)
        else:
            groups.update(((part, terms[-1]), None) for part in terms[:-1])
    return [group for group in groups if group[0] not in STOP_WORDS] or list(groups)


def split_identifier(name: str) -> list[str]:
    """The parts of a name or a path in lower case: `HTTPServer` gives `http server`.

    A part begins after a separator, where upper case follows lower case, and at the last capital
    before lower case (but `userIDs` gives `user ids`). After a digit, capitals begin a part unless
    it is a single one: `h264Decoder` gives `h264 decoder`, `Point2D` and `i18n` stay whole.
    """
    if not name.isascii():
        name = _fold(name)
    if name.islower():
        boundary = _SEPARATORS
    elif name.isascii():
        boundary = _part_boundary("A-Z", "a-z")
    else:
        boundary = _part_boundary("A-ZΑ-ΩЀ-Я", "a-zα-ωа-џ")
    # What does not begin with a letter or digit is empty, or a vowel sign that lost its letter.
    return [part.casefold() for part in boundary.split(name) if part[:1].isalnum()]


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """One form for the singular and plural of a noun, the tenses of a verb, and its adverb.

    These are the inflections of the Snowball English stemmer (steps 1 and 5), without its
    derivations: those would make `general` and `generate`, `integer` and `integrate` the same.
    Unlike there, `queries` gives `query`, and names and nouns that only look inflected stay.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word[-1:] not in _INFLECTED or len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word

    if word.endswith("ies"):
        word = word[:-3] + "y" if len(word) > 4 else word[:-1]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word in _IRREGULAR:
        return _IRREGULAR[word]

    if word.endswith("ied"):
        word = word[:-3] + "y" if len(word) > 4 else word[:-1]
    elif word.endswith(("ed", "ing")) and not word.endswith(("eed", "string")):
        root = word[: -2 if word.endswith("d") else -3]
        if _VOWEL.search(root):
            if root.endswith(("at", "bl", "iz")) or _SHORT_WORD.fullmatch(root):
                word = root + "e"  # creat(e)d, us(e)ing
            elif len(root) > 3 and root[-1] == root[-2] and root[-1] in "bdgmnprt":
                word = root[:-1]  # debug(g)ing
            else:
                word = root
    elif word.endswith("ly") and len(word) > 5:
        if word.endswith("ically"):
            word = word[:-4]
        elif word.endswith("ally") or word[-3] in "cdeghkmnrt":
            word = word[:-2]

    # What `caching` has lost, `cache` loses too. A short word keeps its e: `note` is not `not`.
    if word.endswith("ie") and len(word) > 3:
        return word[:-2] + "y"
    regions = _REGIONS.match(word)
    if regions and word.endswith("e"):
        root = word[:-1]
        if regions[2] or (len(root) >= regions.end(1) and not _SHORT_SYLLABLE.search(root)):
            return root
    elif regions and regions[2] and word.endswith("ll"):
        return word[:-1]  # controll(ed)
    return word


_uncached_stem = stem.__wrapped__


def stem_prefix(term: str) -> str:
    """What every word of ASCII begins with, in lower case, that has this stem: all of it, but for
    what takes the place of an end."""
    if term in _BEGINNINGS:
        return _BEGINNINGS[term]
    return term[:-1] if len(term) > 2 and term.endswith(("e", "y")) else term


def _runs(word: str) -> list[str]:
    """The word, cut where a script with spaces between words meets one without."""
    if word.isascii():
        return [word]
    return ["".join(run) for _, run in groupby(word, _is_unspaced)]


def _is_unspaced(character: str) -> bool:
    # A character class in a pattern would say the same, and take ten milliseconds to compile.
    return bisect(_UNSPACED_BLOCKS, character) % 2 == 1


def _fold(text: str) -> str:
    """The text without accents and compatibility forms, and with ASCII separators alone."""
    # This also composes what was typed apart: a halfwidth カ and its voicing mark are one ガ.
    text = unicodedata.normalize("NFKC", text)
    return _NOT_ASCII.sub(lambda run: run[0].translate(_folded), text)


@cache
def generic() -> frozenset[str]:
    """The terms that prompts about anything have: words of asking and agreeing, and those that
    only join others, in five languages."""
    return STOP_WORDS | frozenset(query(_GENERIC))


def can_be_subject(term: str) -> bool:
    """Whether a prompt may be about this: a number or a letter alone is nothing."""
    return len(term) > 1 and term not in generic() and _PARTICLES.isdisjoint(term)


@cache
def _part_boundary(upper: str, lower: str) -> re.Pattern[str]:
    return re.compile(
        f"{_SEPARATORS.pattern}"
        f"|(?<=[{lower}])(?=[{upper}])"  # refresh|Token
        f"|(?<=[{upper}])(?=[{upper}](?!s(?![{lower}]))[{lower}])"  # HTTP|Server, not UR|Ls
        f"|(?<=[0-9])(?=[{upper}](?:[{lower}]|[{upper}](?![{lower}])))"  # h264|Decoder, not 2|D
    )


class _Terms(dict[str, tuple[str, ...]]):
    """The terms of each word met so far.

    Text repeats its words, so nearly all of them are answered by a lookup that runs no Python.
    Starting over when full costs less than keeping account of what was used last.
    """

    SIZE = 1 << 16

    def __missing__(self, word: str) -> tuple[str, ...]:
        terms = terms_of_word(word)
        if len(word) <= LONGEST:
            if len(self) >= self.SIZE:
                self.clear()
            self[word] = terms
        return terms


def _pairs(run: str) -> tuple[str, ...]:
    characters = list(run)
    if not run.isalnum():
        # A vowel sign stays with its letter.
        characters = _SYLLABLE.findall(run)
    return tuple(map("".join, pairwise(characters))) or tuple(characters)


class _FoldingTable(dict[int, str]):
    """What each character outside ASCII becomes; a table of all of them would slow the start."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Nd":
            folded = str(unicodedata.decimal(character))
        elif category[0] in "LN":
            folded = character
            letters = unicodedata.normalize("NFKD", character)
            # Latin, Greek and Cyrillic come before all other scripts; their accented letters,
            # wherever those are, decompose to letters here.
            if letters[0] < "\u0530":
                folded = "".join(filter(str.isalnum, letters))
        elif category[0] == "M":
            # Accents that did not compose, keycaps, and the selectors that follow an emoji.
            general = unicodedata.name(character, "").startswith(("COMBINING", "VARIATION"))
            folded = "" if general else character
        else:
            # A soft hyphen or a joiner is inside a word, except for the space of no width.
            folded = "" if category == "Cf" and character != "\u200b" else " "
        self[code] = folded
        return folded


_terms = _Terms()
_folded = _FoldingTable(
    # Letters that do not decompose, though readers without them on the keyboard type these.
    str.maketrans(
        {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th"}
    )
    | {ord(a): b for a, b in zip("øØłŁđĐðÐħĦı", "oOlLdDdDhHi", strict=True)}
)

# Where the blocks of such scripts begin and where they have ended.
_UNSPACED_BLOCKS = (
    "\u0e00\u0f00"  # Thai, Lao
    "\u1000\u10a0"  # Myanmar
    "\u1100\u1200"  # Hangul, as single letters
    "\u1780\u1800"  # Khmer
    "\u3005\u3008\u3040\u3200"  # Kana, Bopomofo
    "\u3400\u4dc0\u4e00\ua000"  # Han
    "\ua960\ua980\uac00\ud800"  # Hangul
    "\uf900\ufb00\U00020000\U00040000"  # Han
)
_SYLLABLE = re.compile(r"\w\W{0,8}")  # More signs than this on a letter are a decoration.
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_WORDS_ONLY = bytes(
    [byte if chr(byte).isalnum() or byte in b"_-" else ord(" ") for byte in range(128)]
).ljust(256)
"""Replaces everything in ASCII that is not part of a word by a space."""
# After folding, every character outside ASCII belongs to a word.
_FOLDED_WORD = re.compile(r"[^\x00-,./:-@\[-^`{-\x7f]+")
# Four times digits and letters in one run: no name looks like that, and few hashes do not.
_ENCODED = re.compile(r"(?:[0-9]+[A-Za-z]+){4}")
_SEPARATORS = re.compile(r"[\x00-/:-@\[-`{-\x7f]+")

_INFLECTED = frozenset("sdgyel")
"""The last letters of words that are not their own stem."""
_VOWEL = re.compile("[aeiouy]")
_SHORT_WORD = re.compile("[^aeiouy]*[aeiouy][^aeiouywx]")
_SHORT_SYLLABLE = re.compile("(?:^[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywx])$")
# Snowball's regions: what follows the first consonant after a vowel, and again from there.
_REGIONS = re.compile("([^aeiouy]*[aeiouy]+[^aeiouy])(?:[^aeiouy]*[aeiouy]+[^aeiouy](.+))?")

_IRREGULAR_FORMS = """
apis=api axes=axis buses=bus children=child clis=cli cpus=cpu dbs=db does=do emojis=emoji goes=go
gpus=gpu guis=gui ids=id indices=index matrices=matrix menus=menu prs=pr queued=queue queuing=queue
uris=uri vertices=vertex vms=vm wikis=wiki
"""
_NOT_INFLECTED = """
alias always anything atlas axios bias canvas centos chaos cosmos devops during embed evening
everything express https hundred jenkins kubernetes lens macos morning naked news nothing pandas
postgres readonly sacred series setting something species windows
"""
_IRREGULAR = dict(pair.split("=") for pair in _IRREGULAR_FORMS.split())
_BEGINNINGS: dict[str, str] = {}
for _word, _stem in _IRREGULAR.items():
    _BEGINNINGS[_stem] = commonprefix((_word, _BEGINNINGS.get(_stem, _stem)))
_IRREGULAR |= {word: word for word in _NOT_INFLECTED.split()}

_COMMON = """
a about all also am an and any are as at be because been being both but by can could did do does
doing each few for from had has have having he her here him his how i if in into is it its just ll
me more most my no not of on or other our out please s she should so some such t than that the
their them then there these they this those to too us ve very was we were what when where which
while who whom whose why will with would you your
"""
STOP_WORDS = frozenset(map(stem, _COMMON.split()))
"""Terms that a query does not ask for. They are indexed like all others."""

_GENERIC = """
add address again ahead ask back before best better branch break broken bug build change check clean
code come comment commit continue create debug delete describe didn do doesn don done edit error
everything explain fail failure feature file find first fix function get give go good great hello
help here hey hi implement improve isn issue keep know let like list longer look make maybe merge
minute need new next nice now ok okay old one only open option perfect phase plan please pr problem
proceed project pull push read ready really rebase refactor remove rename repository request review
right run same second see set short shorter show something sorry sound start step still stop
suggestion summary sure take tell test thank thing think third time today tomorrow try two
understand undo up update use using variant wait want way well work write wrong yes
aber alle alles als also am an auch auf aus ändere ändern bei bereit bin bis bist bitte da danach
danke dann das dass dein deinen dem den der des die dies dir doch du durch ein eine einen einmal er
erklär erkläre erklären erste es etwas falsch fertig füge für ganz geht genau gerne gib gut habe
hallo hast hat heute hier hinzu hoch ich ihr im immer in ist ja jetzt kann kannst kein klar können
kurz lass lies los mach machen mal man mehr mein mich mir mit morgen muss na nach nächste nein nicht
nichts noch nochmal nun nur ob oder ohne okay passt perfekt prima probier probiere prüf prüfe
richtig rückgängig sag schau schlecht schon schön schreib sehr sein sich sicher sie sind so soll
sollen stopp super teste toll tun um und uns versuch versuche vielleicht von vor vorschlag war warum
was weiter welche wenn wer wie wieder wir wird wo zeig zeige zu zum zur zweite
accord ah-oui aller alors annule après arrête as-tu attends au aujourd'hui aussi autre aux avec avis
bien bon bonjour bonne c'est-à-dire ce cela ces cette change comme commence corrige ça dans de des
deux deuxième devrait dire dis-moi dois donc du elle en encore ensuite envoie es-tu essaie est-ce et
exactement explique expliquer être faire fais-le fait faut faux génial ils je la lance les leur lis
lui ma maintenant mais mal marche merci même mon montre ne non nous nouveau on ou où par parfait pas
peut peux-tu plaît plus pour pourquoi pousse premier prends prêt puis quand que quel quelle qui quoi
refais regarde reprends répète sa sais salut se ses si son sont suis sur ta tes teste ton toujours
tous tout très un une va-t-il vais vas-y vers veux vérifie voilà vont vous vrai vraiment
adelante ahora al algo antes aquí arregla así bien buenas bueno buenos cambia cierto claro como
comprueba con continúa correcto corrige cosa creo cual cuando de debería deja del desde deshaz
después día donde dos el ella empieza en envía eres es esa ese eso espera está estás esto exacto
explica explicar favor funciona genial gracias ha hacer hago has hasta hay haz hola hoy intenta
intentar la las le lee listo lo los luego mal más me mi mira mucho muestra muy nada no nos nuevo
opción otra otro para perfecto pero por porque primera prueba puede puedes que quiero repite segunda
seguro ser sé si siempre sigue sin sobre son su sube también te tengo tiene todo tu un una vale
vamos ve voy vuelve ya yo
今天 今日 明天 现在 继续 可以 开始 接着 接下 下来 提交 推送 完成 方案 建议 觉得 问题 确定 应该
"""
_PARTICLES = frozenset("的了吗呢吧啊我你您他她它们是不没很好这那哪什么怎请谢再一两第个")
