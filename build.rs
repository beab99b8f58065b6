//! Refuses builds whose cfg flags were lost, with an error that says so.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let set = |flag: &str| std::env::var_os(format!("CARGO_CFG_{flag}")).is_some();
    if !set("MADSIM") && !set("REAL") {
        println!(
            "cargo::error=neither `--cfg madsim` nor `--cfg real` is set: a RUSTFLAGS variable (even an empty one) replaces the \
             flags of .cargo/config.toml; unset it, and build with `cargo build` (simulation) or `cargo build-real` (server)"
        );
    }
}
