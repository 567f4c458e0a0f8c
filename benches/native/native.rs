//! Tollgate beside governor in native Rust: `cargo bench -p tollgate-benches`, and with `-- --save` to keep the numbers.

mod clock;
mod memory;
mod pauses;
mod peers;
mod report;
mod threads;
mod throughput;

use std::error::Error;

use tollgate::Policy;

/// Hits a key may make in a second, under every algorithm and in every peer.
const LIMIT: u32 = 100;
/// Hits a key does make in a second, so that nearly all traffic is allowed.
const TRAFFIC: u64 = 80;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let threads = arguments.iter().any(|argument| argument == "--threads");
    let sections = if threads {
        vec![report::machine(), threads::report(quick)?]
    } else {
        vec![
            report::machine(),
            throughput::report(quick)?,
            threads::report(quick)?,
            memory::report()?,
            pauses::report(quick)?,
        ]
    };
    let text = sections.join("\n\n");
    println!("{text}");
    if arguments.iter().any(|argument| argument == "--save") {
        report::save(&text)?;
    }
    Ok(())
}

/// All algorithms, each with the same limit.
fn policies() -> Result<Vec<Policy>, tollgate::Error> {
    let limit = LIMIT.into();
    Ok(vec![
        Policy::token_bucket(limit, limit, "1s")?,
        Policy::leaky_bucket(limit, limit, "1s")?,
        Policy::fix_window(limit, "1s")?,
        Policy::fix_window_per_key(limit, "1s")?,
        Policy::sliding_counter(limit, "1s")?,
        Policy::sliding_window(limit, "1s")?,
    ])
}

/// Keys as applications make them.
fn keys(count: u64) -> Vec<String> {
    let letters = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let key = |number: u64| {
        // An odd factor modulo a power of two: every number its own scrambled one.
        let mut scrambled = number.wrapping_mul(0x9e_3779_b97f) % (1 << 40);
        let mut name = String::from("user:");
        for _ in 0..8 {
            name.push(char::from(letters[(scrambled % 36) as usize]));
            scrambled /= 36;
        }
        name + ":login"
    };
    (0..count).map(key).collect()
}
