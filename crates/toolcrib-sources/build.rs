//! Packs what the program carries and seldom reads: of the official schemas of AsyncAPI, 0.8 MB, a tenth is left.

#![expect(clippy::disallowed_methods, reason = "that is how cargo tells us")]

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let out = env::var("OUT_DIR").map_err(io::Error::other)?;
    for name in ["3.0.0.json", "3.1.0.json"] {
        let path = format!("../../vendor/asyncapi/{name}");
        println!("cargo::rerun-if-changed={path}");
        let packed = miniz_oxide::deflate::compress_to_vec_zlib(&fs::read(path)?, 9);
        fs::write(Path::new(&out).join(name), packed)?;
    }
    Ok(())
}
