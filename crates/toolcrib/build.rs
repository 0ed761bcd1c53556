//! Has the linker fold functions that came out alike, which is a megabyte of a release. Only the linker that rustc brings
//! along is asked: another may not know how, or may have been told something else.

#![expect(clippy::disallowed_methods, reason = "that is how cargo tells us")]

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| var(name).is_ok_and(|it| it == value);
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let usual = var("RUSTC_LINKER").is_err() && !flags.contains("link");
    if usual && is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
