//! Exports the stack pointer of the wasm, so that JavaScript can reset it after a trap.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "wasm32") {
        println!("cargo::rustc-link-arg-cdylib=--export=__stack_pointer");
        // A small stack keeps the first memory small: no function here recurses.
        println!("cargo::rustc-link-arg-cdylib=-zstack-size=131072");
    }
}
