//! Gives the wasm a small stack.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        // It keeps the first memory small: no function here recurses.
        println!("cargo::rustc-link-arg-cdylib=-zstack-size=131072");
    }
}
