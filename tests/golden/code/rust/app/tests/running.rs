mod common;

use app::Options;
use common::options;

#[test]
fn it_runs() {
    let options: Options = options();
    assert!(app::run(&options).is_err());
}
