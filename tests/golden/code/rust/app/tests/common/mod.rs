use app::Options;

pub fn options() -> Options {
    Options { verbose: true, ..Default::default() }
}
