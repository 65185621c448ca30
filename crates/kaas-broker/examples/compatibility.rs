//! Prints `docs/compatibility.md` with the part anew that is made from the table of APIs. The page as it stands is read
//! from standard input: `cargo run -p kaas-broker --example compatibility < docs/compatibility.md`.

use std::io::Read;

fn main() -> std::io::Result<()> {
    let mut page = String::new();
    std::io::stdin().read_to_string(&mut page)?;
    print!("{}", kaas_broker::api::docs::renew(&page));
    Ok(())
}
