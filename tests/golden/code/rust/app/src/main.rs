use app::{run, Options};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let options = Options::from(&words[..]);
    let made = key_store::store! { "a" => 1, "b" => 2 };
    println!("{:?} {}", run(&options), made.len());
}
