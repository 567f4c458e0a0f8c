use std::io::stdin;
use tollgate::{Limiter, Policy, SystemClock};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut limiter = Limiter::<String, _>::new(Policy::fix_window_per_key(2, "1h")?, SystemClock)?;
    for key in stdin().lines() {
        let key = key?;
        let decision = limiter.hit(key.as_str(), 1)?;
        match decision.retry_after {
            Some(0) => println!("{key}: allowed, {} left", decision.remaining),
            Some(wait) => println!("{key}: denied for {} s", wait.div_ceil(1_000)),
            None => println!("{key}: denied for ever"),
        }
    }
    Ok(())
}
