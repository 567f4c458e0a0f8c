//! Writes `generated.ts` and `operations.ts` into a folder, by default `js/wasm`.

use std::path::PathBuf;

use tollgate_npm::generated::{operations_typescript, typescript};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "js/wasm".into()));
    std::fs::write(folder.join("generated.ts"), typescript())?;
    std::fs::write(folder.join("operations.ts"), operations_typescript())
}
