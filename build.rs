//! Compiles `proto/` in pure Rust (no `protoc` needed) and refuses builds whose cfg flags were lost.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let protos = [
        "proto/rpc.proto",
        "proto/internal.proto",
        "proto/test/probe.proto",
    ];
    let descriptors = protox::compile(protos, [Path::new("proto")])?;
    tonic_prost_build::configure()
        // Keys and values travel as shared buffers from the socket to the store without a copy.
        .bytes(".")
        .build_transport(false)
        .compile_fds(descriptors)?;
    Ok(())
}
