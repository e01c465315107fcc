"""Decides whether a word without digits and signs can be a password.

After "password is" and "password:" there is a password, or something about one: its type, its
state, what happens to it. What is said about passwords uses few words, and these are excluded.
"""

import re

from ctx.redaction.entropy import is_placeholder

_SHORTEST = 6

_TYPES = (
    "bytes bytestring callable char charfield element incomplete integer nullable number object "
    "optional password secretstr sensitive string strings unicode varchar widget"
)
_STATES = (
    "absent accepted active again allowed already always anything available blank bad both cached "
    "changed checked cleartext compromised correct different disallowed displayed either expired "
    "existing false failed generated ignored implied inactive incorrect insecure invalid "
    "mandatory matching missing necessary needed neither nothing obsolete obvious optionally other "
    "plaintext present prompted protected provided public random recommended rejected requested "
    "required reset safe secure shared simple something specified stored strong temporary "
    "unavailable unchanged undefined unknown unsafe unspecified useless usually validated visible "
    "weak without working written wrong"
)
_TALK = (
    "accept after against another argument attribute authentication based because before below "
    "between change column command commands configuration connection contains create dialog "
    "during encoding enter entered entry environment example except expect failure fallback field "
    "format function generator getpass handling hashing header however inside instead interactive "
    "keyring length letters longer lookup manager managers method nothing number option options "
    "output param parameter passing people phrase please policy policies prompt property "
    "protection providers reading recovery replace request requirements respectively response "
    "return returns rotation server setting settings should shorter somehow source storage "
    "strength support system template through together typed update user username usernames "
    "validation validator validators value values variable variables vault verification whatever "
    "whether within"
)
_CODE = (
    "attrs config context credentials default environ getattr inherit kwargs lambda options params "
    "payload props request require result secrets security self session settings state values"
)
_OTHER_LANGUAGES = (
    "ensuite abgelaufen erforderlich falsch gespeichert korrekt leer notwendig richtig ungültig "
    "vergessen verschlüsselt obligatoire oublié requis incorrecte incorrecta incorrecto inválida "
    "inválido invalide obligatoria obligatorio olvidada requerida necesaria sbagliata errata "
    "obbligatoria richiesta obrigatória incorreta necessária esquecida onjuist verplicht vergeten "
    "ongeldig nieprawidłowe wymagane неверный обязателен felaktigt krävs"
)
_ABOUT_PASSWORDS = frozenset(" ".join((_TYPES, _STATES, _TALK, _CODE, _OTHER_LANGUAGES)).split())
# Endings of adjectives and participles: "encrypted", "readable", "case-sensitive".
_ADJECTIVE = r"(?:ed|able|ible|tive|sive|ally|ory)\Z"
_CONSTANT = r"_?[A-Z]+(?:_[A-Z]+)+"
# Whole, or as short as it is shown.
NODE_ID = r"0[0-9A-HJKMNP-TV-Z]{11}(?:[0-9A-HJKMNP-TV-Z]{14})?"
NAME_OF_A_SECRET = (
    r"(?i)passw|passphrase|passcode|secret[_-]?key|\A(?:my|the|your)?[_-]?secret\Z"
    r"|token|apikey|credential"
)


def can_be_password(word: str) -> bool:
    lowered = word.lower().rstrip(".:!?")
    return (
        len(lowered) >= _SHORTEST
        and _ABOUT_PASSWORDS.isdisjoint((lowered, lowered.rpartition("_")[2]))
        and not re.search(_ADJECTIVE, lowered)
        and not re.fullmatch(_CONSTANT, word)
        and not re.search(NAME_OF_A_SECRET, word)
        and not is_placeholder(word)
    )


def is_chosen(value: str) -> bool:
    """Whether a person may have chosen this: letters, and digits or odd signs among them."""
    return (
        len(value) >= 6
        and re.search("[A-Za-z]", value) is not None
        and re.search("[0-9!@#$%^&*+?~]", value) is not None
        and re.search(_NO_PASSWORD, value) is None
        and not is_placeholder(value)
    )


def is_distinctive(value: str) -> bool:
    """Whether hardly anything but a password looks like this, even in a sentence."""
    value = re.sub("(?<=[a-z])=", "+", value).rstrip(".!?*:,;")
    return (
        is_chosen(value)
        and re.fullmatch(_DISTINCTIVE, value) is not None
        and re.fullmatch(NODE_ID, value) is None
        and re.search(_TECHNICAL, value.lower()) is None
    )


def is_sure(value: str) -> bool:
    return is_distinctive(value) or is_passphrase(value)


# `Kirsche4417`, `k1rsch3n`, `Kirsche!baum12`.
_DISTINCTIVE = (
    r"[A-Za-z]?[a-z]{3,11}\d{2,4}"
    r"|(?!0x|[0-9a-fA-F]+\Z)[A-Za-z]{0,8}(?:\d{1,2}[A-Za-z]{1,8}){2,6}\d{0,4}"
    r"|[A-Za-z]{3,12}[~!*+=.#@$%&?-][A-Za-z]{0,12}\d{1,4}\W?"
    r"|(?=\D*\d)[A-Za-z]\w{2,12}[~!*+=#$%&?][A-Za-z0-9]{2,12}\W?"
)
_TECHNICAL = (
    r"\A(?:aes|auth|base|blowfish|bug|chapter|crypt|bcrypt|debian|file|host|http|issue|java|latin|lib\w+"
    r"|mysql|oauth|openssl|page|perl|php|pkcs|postgres\w*|python|rfc|ruby|sha|shake|md|section|server|table|test|user"
    r"|utf|vers\w*|windows)\W?\d"
)


def is_passphrase(value: str) -> bool:
    """Whether this is three or more words of a passphrase: `correct-horse-battery`."""
    return (
        re.fullmatch(
            r"[A-Za-z][a-z]{2,}(?:([-.+])[A-Za-z][a-z]{2,})(?:\1[A-Za-z][a-z]{2,})+", value
        )
        is not None
        and _NO_PASSPHRASE.isdisjoint(re.split("[-.+]", value.lower()))
        and not is_placeholder(value)
    )


_NO_PASSPHRASE = frozenset(
    "and app auth based client config end factor file for free from get group host http https key "
    "local login name non not off one only out password policy project random role safe secret "
    "server service set state test the this token two use user version with".split()
)


# Parts of code, paths, addresses, names of files, something cut short, words, versions.
_NO_PASSWORD = (
    r"""[\s()\[\]{}=\\"'<>;]|\A[$%@.-]|/.*/|://|\.{3}|\A\W*[A-Za-z]+\W*\Z"""
    r"|\A[\w-]+\.[a-z][a-z0-9]{0,4}\Z|\bv?\d+\.\d+\.\d"
)
