"""Passwords that people choose, in the forms in which they write them down.

A form contains `{}` for the value as it is, `{q}` for a shell word, `{u}` for a part of a URL, and
`{x}` for text in XML. Values without spaces appear in every form.
"""

import html
import shlex
import urllib.parse
from collections.abc import Iterator

from bench.secret_values import Sample

VALUES = (
    "hunter2",
    "sunshine",
    "letmein",
    "dragonfly",
    "qwertyuiop",
    "iloveyou",
    "kingfisher",
    "Geheim123",
    "Summer2024!",
    "P@ssw0rd!",
    "Tr0ub4dor&3",
    "Br!ght0n-Pier",
    "mySecretPony",
    "gr3enTea",
    "correct-horse-battery-staple",
    "blau_Elefant_7",
    "20021987",
    "F00tball.2019",
    "xK9#mQ2$vL",
    "zebra*Crossing",
)

ASSIGNMENTS = (
    "password={}",
    "password: {}",
    "Password : {}",
    'PASSWORD="{}"',
    "db_password = '{}'",
    '"password": "{}"',
    "{{'user': 'root', 'passwd': '{}'}}",
    "pwd={}",
    "pass: {}",
    "passphrase: {}",
    "<password>{x}</password>",
    '<property name="password" value="{x}"/>',
    "Server=db;Database=shop;User Id=sa;Password={};",
    "spring.datasource.password={}",
    "ansible_become_pass: {}",
    "define('DB_PASSWORD', '{}');",
    'connect(host="db", user="root", passwd="{}")',
    "const dbPassword = '{}';",
    'String password = "{}";',
    'password := "{}"',
    'variable "db_password" {{\n  type    = string\n  default = "{}"\n}}',
    "- name: DB_PASSWORD\n  value: {}",
    "[client]\nuser = root\npassword = {}\n",
    'network={{\n  ssid="home"\n  psk="{}"\n}}',
    "CREATE USER app WITH PASSWORD '{}';",
    "ALTER USER 'app'@'%' IDENTIFIED BY '{}';",
    "requirepass {}",
    "machine git.example.com login bob password {}",
    "db.example.com:5432:shop:app:{}",
    "*:*:*:postgres:{}",
    "2026-05-01 10:00:00 INFO connect user=app password={} host=db",
    "user=bob&password={u}&remember=1",
    "note to self, the login changed, password: {}",
    "# TODO remove before release: password = {}",
    "mount -t cifs //nas/share /mnt -o username=bob,password={q}",
)

COMMANDS = (
    "mysql -u root -p{q} shop",
    "mysqldump --user=root --password={q} shop > dump.sql",
    "sshpass -p {q} ssh deploy@example.com",
    "sshpass -p{q} scp a.txt deploy@example.com:",
    "curl -u admin:{q} https://example.com/api",
    "curl --user 'admin:{}' https://example.com/api",
    "PGPASSWORD={q} psql -h db -U app shop",
    "docker login -u bob -p {q} registry.example.com",
    "redis-cli -h cache -a {q} ping",
    "ldapsearch -x -D cn=admin,dc=example,dc=com -w {q}",
    "htpasswd -b .htpasswd bob {q}",
    "echo {q} | sudo -S apt update",
    "echo 'root:{}' | chpasswd",
    "openssl rsa -in key.pem -passin pass:{q}",
    "7z x backup.7z -p{q}",
    "unzip -P {q} backup.zip",
    "wget --http-user=bob --http-password={q} https://example.com/a",
    "git clone https://bob:{u}@git.example.com/shop.git",
    "DATABASE_URL=postgres://app:{u}@db.example.com:5432/shop",
    "smbclient //nas/share -U bob%{q}",
)

SENTENCES = (
    "the password is {}",
    "The password for the staging database is {}.",
    'my password is "{}", please do not share it',
    "Password for admin: {}",
    "log in as admin with password {}",
    "use the password {} for the test account",
    "user: admin, password: {}",
    "credentials: admin / {}",
    "the admin password was changed to {}",
    "I set the root password to {}",
    "the wifi password is `{}`",
    "das Passwort ist {}",
    "Das Kennwort lautet {}.",
    "Passwort: {}",
    "le mot de passe est {}",
    "Mot de passe : {}",
    "la contraseña es {}",
    "Contraseña: {}",
    "la password è {}",
    "a senha é {}",
    "Senha: {}",
    "het wachtwoord is {}",
    "hasło to {}",
    "пароль: {}",
    "lösenordet är {}",
    "密码是{}",
    "パスワードは{}です",
)

FORMS = ASSIGNMENTS + COMMANDS + SENTENCES


def samples() -> Iterator[tuple[str, Sample]]:
    """Each form with each value."""
    for form in FORMS:
        for value in VALUES:
            yield form, fill(form, value)


def fill(form: str, value: str) -> Sample:
    written = value
    if "{q}" in form:
        written = shlex.quote(value)
    elif "{u}" in form:
        written = urllib.parse.quote(value, safe="")
    elif "{x}" in form:
        written = html.escape(value)
    text = form.format(value, q=written, u=written, x=written)
    return Sample(text, written.strip("'"))


BENIGN_WORDS = ("required", "wrong", "incorrect", "invalid", "missing", "empty", "too short")

BENIGN = (
    *(f"the password is {word}" for word in BENIGN_WORDS),
    *(f"Error: password {word}" for word in BENIGN_WORDS),
    *(f"password: {word}" for word in BENIGN_WORDS),
    "password: str",
    "password: string;",
    "password?: string | null",
    "password: Optional[str] = None",
    "def login(user: str, password: str) -> bool:",
    "password = getpass.getpass()",
    "password = os.environ['DB_PASSWORD']",
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: {{ vault_password }}",
    'password = "${DB_PASSWORD}"',
    "password=$DB_PASSWORD",
    "password=<your password>",
    "password: ********",
    "Password: ",
    "password = self.password",
    "password = models.CharField(max_length=128)",
    "password = request.form['password']",
    "the password is stored as a hash",
    "the password is never logged",
    "the password is checked by the server",
    "the password was changed yesterday",
    "the password is the same as before",
    "the password is sent over TLS",
    "the token is passed in the header",
    "das Passwort ist falsch",
    "das Passwort ist zu kurz",
    "le mot de passe est obligatoire",
    "le mot de passe est incorrect",
    "la contraseña es obligatoria",
    "la contraseña es incorrecta",
    "het wachtwoord is onjuist",
    "a senha é inválida",
    "la password è sbagliata",
    "mkdir -p src/ctx/redaction",
    "mysql -u root -p shop",
    "mysql -p < dump.sql",
    "cp -p a b",
    "docker run -p 8080:80 nginx",
    "docker run -u 1000:1000 image",
    "curl -u $USER:$TOKEN https://example.com",
    "ssh -p 2222 deploy@example.com",
    "echo done | sudo -S true",
    "tar -cpzf backup.tar.gz src",
    "pytest -p no:cacheprovider -w tests",
    "redis-cli -a $REDIS_PASSWORD ping",
    "10.0.0.1:5432:shop",
    "a:b:c:d:e",
    "tests/test_a.py:12:5:error:unused",
    'default = "eu-central-1"',
    'variable "region" {\n  type    = string\n  default = "eu-central-1"\n}',
    "- name: DB_HOST\n  value: db.example.com",
    "Cookie: theme=dark; lang=en",
    "Set-Cookie: locale=de_DE; path=/",
    "cookie: SameSite=Lax",
    "credentials: include",
    "credentials: same-origin",
    "pass: 12, fail: 3",
    "3 passed, 1 failed",
    "pass = True",
    "bypass: always",
    "compass: north",
    "passphrase: none",
    "secret: true",
    "the secret is out",
    "api key: see below",
    "token: Token",
    "tokens: 4096",
    "token = tokenizer.next()",
    "author: somebody",
    "key: value",
    "primary key: id",
    "IDENTIFIED BY plugin",
    "https://example.com:8080/a@b",
    "git@github.com:acme/shop.git",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit 1b2b0b822cd15d6c15b0f00a08e3b0c44298fc1c",
    "Requirement already satisfied: passlib in ./lib (1.7.4)",
    "warning: password input may be echoed",
    "Enter password:",
    "Passwort vergessen?",
    "Mot de passe oublié ?",
    "¿Olvidó su contraseña?",
)
"""Lines about passwords and commands with the same options, without a secret."""
