//! Looks whether all is well.

fn main() {
    std::process::exit(if checked() { 0 } else { 1 });
}

fn checked() -> bool {
    app::run(&app::Options::default()).is_ok()
}
