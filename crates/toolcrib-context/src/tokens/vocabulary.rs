//! The vocabularies of OpenAI's tokenizers: packed in the program, unpacked when first used.
//!
//! `tiktoken-rs` carries them too, as text, nearly four times as large; what is not named here is not linked.
//! `scripts/vocabularies` packs them, and says how.

use std::sync::LazyLock;

use tiktoken_rs::{CoreBPE, Rank};

pub(super) static CL100K: LazyLock<CoreBPE> =
    LazyLock::new(|| unpack(include_bytes!("../../../../vendor/tiktoken/cl100k.bin")));

pub(super) static O200K: LazyLock<CoreBPE> =
    LazyLock::new(|| unpack(include_bytes!("../../../../vendor/tiktoken/o200k.bin")));

/// More than any of them is.
const MOST: usize = 8 << 20;

fn unpack(packed: &[u8]) -> CoreBPE {
    read(packed).expect("it is part of the program, and a test reads it")
}

fn read(packed: &[u8]) -> Option<CoreBPE> {
    let plain = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(packed, MOST).ok()?;
    let (pattern, rest) = sized(&plain)?;
    let (count, rest) = number(rest)?;
    let (lengths, mut tokens) = rest.split_at_checked(count)?;
    let mut ranks = rustc_hash::FxHashMap::default();
    for (rank, length) in lengths.iter().enumerate() {
        let (token, rest) = tokens.split_at_checked(usize::from(*length))?;
        ranks.insert(token.to_vec(), Rank::try_from(rank).ok()?);
        tokens = rest;
    }
    // Names of special tokens are text like any other, so there are none.
    CoreBPE::new(ranks, rustc_hash::FxHashMap::default(), str::from_utf8(pattern).ok()?).ok()
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((usize::try_from(u32::from_le_bytes(*number)).ok()?, rest))
}

fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is packed is what the crate has.
    #[test]
    fn texts_are_cut_as_the_crate_cuts_them() {
        let texts = [
            "The quick brown fox jumps over the lazy dog.",
            "fn main() {\n    println!(\"{}\", 0x1F_u8);\r\n}\n\n\t  // 123456",
            "Größe 東京 नमस्ते 🇩🇪👩‍👩‍👧 don't WE'LL i'm  <|endoftext|>",
            "aGVsbG8gd29ybGQ= {\"a\":[1.0,-2e10,null]} \u{0}\u{7f}\u{feff}",
        ];
        let pairs = [
            (&*CL100K, tiktoken_rs::cl100k_base_singleton()),
            (&*O200K, tiktoken_rs::o200k_base_singleton()),
        ];
        for (ours, theirs) in pairs {
            for text in texts {
                assert_eq!(ours.encode_ordinary(text), theirs.encode_ordinary(text), "{text}");
            }
        }
    }

    #[test]
    fn what_is_damaged_is_none() {
        let packed = include_bytes!("../../../../vendor/tiktoken/cl100k.bin");
        assert!(read(b"").is_none() && read(&packed[..packed.len() / 2]).is_none());
    }
}
