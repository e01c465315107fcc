"""Sessions over small repositories in Rust."""

from tests.e2e.claude_code.replay.scenario import Expected, Scenario, Turn, bash, edit, read

MANIFEST = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n'
CARGO_TEST = "cargo test --offline --quiet --lib"

PARSER = """//! Reads `key = value` lines.

/// The pairs of a text.
pub fn parse(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let at = line.find('=').unwrap();
        let (key, value) = line.split_at(at);
        found.push((key.trim().to_string(), value[1..].trim().to_string()));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_lines_without_a_sign() {
        assert_eq!(parse("a = 1\\nnothing\\n"), [("a".to_string(), "1".to_string())]);
    }
}
"""

PARSER_PANIC = Scenario(
    "parser_panic",
    {"Cargo.toml": MANIFEST.format("pairs"), "src/lib.rs": PARSER, ".gitignore": "target\n"},
    (
        Turn(
            "parse() panics on a line without an equals sign. It should skip such lines.",
            (
                bash(CARGO_TEST),
                read("src/lib.rs"),
                edit(
                    "src/lib.rs",
                    "        let at = line.find('=').unwrap();\n",
                    "        let Some(at) = line.find('=') else { skip };\n",
                ),
                bash(CARGO_TEST),
                edit("src/lib.rs", "else { skip }", "else { continue }"),
                bash(CARGO_TEST),
                (
                    "`parse` in src/lib.rs skips lines without an equals sign instead of panicking;"
                    " skips_lines_without_a_sign passes."
                ),
            ),
        ),
    ),
    (Expected("bugfix", ("skips_lines_without_a_sign", "parse"), ("src/lib.rs",)),),
    3,
    ("Compiling", "running 1 test", "RUST_BACKTRACE"),
    {
        "request": ("parse()", "panics"),
        "completed": ("parse",),
        "files_edited": ("src/lib.rs",),
    },
)

FLAGS = """//! Flags of the command line.

/// The flag of a setting.
pub fn flag(name: &str) -> String {
    format!("--{name}")
}
"""
FLAGS_TEST = """

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kebab() {
        assert_eq!(flag("max_depth"), "--max-depth");
    }
}
"""

FLAGS_CORRECTED = Scenario(
    "flags_corrected",
    {"Cargo.toml": MANIFEST.format("flags"), "src/lib.rs": FLAGS, ".gitignore": "target\n"},
    (
        Turn(
            "Give every setting an environment variable too.",
            (
                read("src/lib.rs"),
                edit(
                    "src/lib.rs",
                    "/// The flag of a setting.",
                    "/// The environment variable of a setting.\n"
                    "pub fn variable(name: &str) -> String {\n"
                    '    format!("FLAGS_{}", name.to_uppercase())\n}\n\n'
                    "/// The flag of a setting.",
                ),
                bash(CARGO_TEST),
                (
                    "Added `variable` to src/lib.rs, which gives each setting a variable such as"
                    " FLAGS_DEPTH. Flags stay in snake_case."
                ),
            ),
        ),
        Turn(
            "No, use kebab-case for flags, not snake_case.",
            (
                edit(
                    "src/lib.rs",
                    '    format!("--{name}")\n}\n',
                    '    format!("--{}", name.replace(\'_\', "-"))\n}\n' + FLAGS_TEST,
                ),
                bash(CARGO_TEST),
                "`flag` gives kebab-case now.",
            ),
        ),
    ),
    (
        Expected("feature", ("variable",), ("src/lib.rs",)),
        Expected("decision", ("kebab-case", "flags")),
    ),
    4,
    ("running 1 test", "Compiling"),
    {
        "request": ("environment variable",),
        "completed": ("variable",),
        "files_edited": ("src/lib.rs",),
    },
)

SCENARIOS = (PARSER_PANIC, FLAGS_CORRECTED)
