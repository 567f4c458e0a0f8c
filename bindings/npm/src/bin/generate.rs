//! Writes `js/wasm/generated.ts`, whose path is the only argument.

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "js/wasm/generated.ts".into());
    std::fs::write(path, tollgate_npm::generated::typescript())
}
