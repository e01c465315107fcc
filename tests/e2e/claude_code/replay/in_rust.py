"""Sessions over small repositories in Rust."""

from tests.e2e.claude_code.replay.scenario import Expected, Scenario, Turn, bash, edit, read

MANIFEST = '[package]\nname = "{}"\nversion = "0.1.0"\nedition = "2021"\n'
CARGO_TEST = "cargo test --offline --quiet --lib"


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

SCENARIOS = (FLAGS_CORRECTED,)
