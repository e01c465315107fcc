"""Files that usually hold secrets. That they were used is stored, but none of their text.

They are recognised by name, because their content can look like anything.
"""

import posixpath
import re
from fnmatch import translate
from functools import cache

_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd"),
    *(".npmrc", ".pypirc", ".git-credentials", ".dockercfg", ".vault_pass*", "credentials"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk"),
    *("*.asc", "*.gpg", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.tfvars"),
    *("secret.*", "secrets.*", "credentials.*", "service-account*.json", "kubeconfig"),
)
# Templates, and code that handles secrets.
_HARMLESS = (
    *("*.example", "*.sample", "*.template", "*.dist", "*.pub", "*.py", "*.rs", "*.go", "*.ts"),
    *("*.js", "*.tsx", "*.jsx", "*.java", "*.kt", "*.rb", "*.php", "*.cs", "*.c", "*.h", "*.cpp"),
    *("*.md", "*.rst", "*.swift", "*.scala", "*.sh"),
)


def is_secret_file(path: str) -> bool:
    name = posixpath.basename(path.replace("\\", "/")).lower()
    return _has(name, _NAMES) and not _has(name, _HARMLESS)


def _has(name: str, patterns: tuple[str, ...]) -> bool:
    return _any_of(patterns).match(name) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))
