//! Writes the Rust code of `proto/` into `src/pb/`: `cargo run -p gatehouse-proto-gen`. The compiler of `.proto` files is
//! pure Rust, so that no `protoc` is needed. It stands in a crate of its own, and what it writes is checked in, because
//! nobody who builds the server should have to build the compiler first.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// What is compiled; what these import comes with them.
const PROTOS: [&str; 3] = ["rpc.proto", "internal.proto", "test/probe.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    let files = generated()?;
    let folder = written();
    fs::create_dir_all(&folder)?;
    for name in contents(&folder)?.into_keys() {
        if !files.contains_key(&name) {
            fs::remove_file(folder.join(&name))?;
            eprintln!("removed src/pb/{name}");
        }
    }
    for (name, text) in files {
        fs::write(folder.join(&name), text)?;
        eprintln!("wrote src/pb/{name}");
    }
    Ok(())
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Where the files stand that are checked in.
fn written() -> PathBuf {
    root().join("src/pb")
}

/// The text of each file that belongs into `src/pb/`: one for each package.
fn generated() -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let descriptors = protox::compile(PROTOS, [root().join("proto")])?;
    let folder = tempfile::tempdir()?;
    tonic_prost_build::configure()
        // Keys and values travel as shared buffers from the socket to the store without a copy.
        .bytes(".")
        .build_transport(false)
        .emit_rerun_if_changed(false)
        .out_dir(folder.path())
        .compile_fds(descriptors)?;
    let files = contents(folder.path())?;
    Ok(files
        .into_iter()
        .map(|(name, code)| {
            let text = with_header(&name, &code);
            (name, text)
        })
        .collect())
}

/// Says of a file what it is and how it changes.
fn with_header(name: &str, code: &str) -> String {
    let package = name.trim_end_matches(".rs");
    format!(
        "//! Package `{package}` of `proto/`, written by `cargo run -p gatehouse-proto-gen`: change the `.proto` file and run\n\
         //! that again. It may be long because nobody writes it by hand.\n\n\
         {code}"
    )
}

/// Name and text of each file in a folder.
fn contents(folder: &Path) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, fs::read_to_string(entry.path())?);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_checked_in_is_what_proto_says() {
        let generated = generated().expect("proto/ compiles");
        let written = contents(&written()).expect("src/pb can be read");
        let mut differing: Vec<&String> = generated.keys().chain(written.keys()).collect();
        differing.sort();
        differing.dedup();
        differing.retain(|name| generated.get(*name) != written.get(*name));
        assert!(
            differing.is_empty(),
            "src/pb is not what proto/ says; it differs in {differing:?}. Run `cargo run -p gatehouse-proto-gen`"
        );
    }
}
