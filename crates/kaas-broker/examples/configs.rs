//! Prints `docs/configs.md`.

fn main() {
    print!("{}", kaas_broker::config::docs::markdown());
}
