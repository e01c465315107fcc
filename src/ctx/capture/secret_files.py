"""Files that usually hold secrets. That they were used is stored, but none of their text.

They are recognised by name, because their content can look like anything.
"""

import posixpath
from fnmatch import fnmatchcase

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
    return any(fnmatchcase(name, pattern) for pattern in patterns)
