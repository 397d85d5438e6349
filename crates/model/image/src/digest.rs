//! Content digests: `sha256:<64 hex>` and `sha512:<128 hex>`.

use std::fmt;

use sha2::Digest as _;

use crate::serde_text::as_text;

/// The hash functions that the OCI image specification registers and that registries accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DigestAlgorithm {
    /// SHA-256, 64 hexadecimal digits.
    Sha256,
    /// SHA-512, 128 hexadecimal digits.
    Sha512,
}

impl DigestAlgorithm {
    /// The name before the colon.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// A content digest, lower-case, checked. Ordered and compared by its text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: DigestAlgorithm,
    text: String,
}

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// Nothing was written.
    #[error("the digest is empty")]
    Empty,
    /// There is no colon between algorithm and value.
    #[error("`{text}` has no algorithm in front: a digest is written `sha256:` and 64 hexadecimal digits")]
    NoAlgorithm {
        /// What was written, shortened.
        text: String,
    },
    /// The algorithm is written twice, as in `sha256:sha256:…`.
    #[error("the algorithm `{algorithm}` is written twice")]
    Doubled {
        /// The algorithm.
        algorithm: String,
    },
    /// The algorithm is none that we know.
    #[error("the digest algorithm `{algorithm}` is not supported: use sha256 or sha512")]
    Algorithm {
        /// What stands before the colon, shortened.
        algorithm: String,
    },
    /// The value has the wrong length.
    #[error("a {algorithm} digest has {wanted} hexadecimal digits, this one has {found}")]
    Length {
        /// The algorithm.
        algorithm: &'static str,
        /// Digits that belong there.
        wanted: usize,
        /// Characters found.
        found: usize,
    },
    /// A character that is no lower-case hexadecimal digit.
    #[error("`{character}` is no lower-case hexadecimal digit")]
    Character {
        /// The character.
        character: char,
    },
}

impl Digest {
    /// Reads `sha256:<64 hex>` or `sha512:<128 hex>`; lower-case only, nothing around it.
    pub fn parse(text: &str) -> Result<Self, DigestError> {
        if text.is_empty() {
            return Err(DigestError::Empty);
        }
        let Some((name, hex)) = text.split_once(':') else {
            return Err(DigestError::NoAlgorithm { text: shortened(text) });
        };
        let algorithm = match name {
            "sha256" => DigestAlgorithm::Sha256,
            "sha512" => DigestAlgorithm::Sha512,
            other => return Err(DigestError::Algorithm { algorithm: shortened(other) }),
        };
        if hex.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')) {
            return Err(DigestError::Doubled { algorithm: name.to_owned() });
        }
        let found = hex.chars().count();
        if found != algorithm.hex_length() {
            return Err(DigestError::Length {
                algorithm: algorithm.name(),
                wanted: algorithm.hex_length(),
                found,
            });
        }
        if let Some(character) = hex.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
            return Err(DigestError::Character { character });
        }
        Ok(Self { algorithm, text: text.to_owned() })
    }

    /// The SHA-256 digest of the bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Self::hasher();
        hasher.update(bytes);
        hasher.finish()
    }

    /// A streaming SHA-256.
    pub fn hasher() -> DigestHasher {
        DigestHasher(Hasher::Sha256(sha2::Sha256::new()))
    }

    /// A streaming hasher of this digest's own algorithm, to check bytes against it.
    pub fn verifier(&self) -> DigestHasher {
        match self.algorithm {
            DigestAlgorithm::Sha256 => Self::hasher(),
            DigestAlgorithm::Sha512 => DigestHasher(Hasher::Sha512(Box::new(sha2::Sha512::new()))),
        }
    }

    /// True if this is the digest of the bytes.
    pub fn verifies(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.verifier();
        hasher.update(bytes);
        hasher.finish() == *self
    }

    /// The hash function.
    pub fn algorithm(&self) -> DigestAlgorithm {
        self.algorithm
    }

    /// The whole text, `sha256:…`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The hexadecimal digits without the algorithm.
    pub fn hex(&self) -> &str {
        self.text.split_once(':').map_or("", |(_, hex)| hex)
    }

    /// The algorithm and the first twelve digits, for people: `sha256:7ef272bc7be8`.
    pub fn short(&self) -> String {
        let hex = self.hex();
        format!("{}:{}", self.algorithm.name(), hex.get(..12).unwrap_or(hex))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

as_text!(Digest, DigestError, "a digest such as sha256:<64 hexadecimal digits>");

/// Hashes bytes as they come.
#[derive(Debug, Clone)]
pub struct DigestHasher(Hasher);

#[derive(Debug, Clone)]
enum Hasher {
    Sha256(sha2::Sha256),
    Sha512(Box<sha2::Sha512>),
}

impl DigestHasher {
    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Hasher::Sha256(hasher) => hasher.update(bytes),
            Hasher::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The digest of everything taken.
    pub fn finish(self) -> Digest {
        match self.0 {
            Hasher::Sha256(hasher) => written(DigestAlgorithm::Sha256, &hasher.finalize()),
            Hasher::Sha512(hasher) => written(DigestAlgorithm::Sha512, &hasher.finalize()),
        }
    }
}

fn written(algorithm: DigestAlgorithm, value: &[u8]) -> Digest {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(algorithm.name().len() + 1 + value.len() * 2);
    text.push_str(algorithm.name());
    text.push(':');
    for byte in value {
        for nibble in [byte >> 4, byte & 0x0f] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    Digest { algorithm, text }
}

/// Keeps hostile input out of messages: at most 40 characters.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digest_of_known_bytes() {
        // FIPS 180-2, appendix B.1 and C.1.
        assert_eq!(
            Digest::of(b"abc").as_str(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        let sha512 = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                      2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
        let sha512 = Digest::parse(sha512).unwrap();
        assert!(sha512.verifies(b"abc"));
        assert!(!sha512.verifies(b"abd"));
        assert_eq!(Digest::of(b"abc").short(), "sha256:ba7816bf8f01");
    }

    #[test]
    fn what_is_no_digest_says_why() {
        let hex = "a".repeat(64);
        let check = |text: &str, error: DigestError| assert_eq!(Digest::parse(text), Err(error), "{text}");
        check("", DigestError::Empty);
        check("latest", DigestError::NoAlgorithm { text: "latest".into() });
        check(&format!("sha256:sha256:{hex}"), DigestError::Doubled { algorithm: "sha256".into() });
        check(&format!("md5:{hex}"), DigestError::Algorithm { algorithm: "md5".into() });
        check(&format!("SHA256:{hex}"), DigestError::Algorithm { algorithm: "SHA256".into() });
        check("sha256:abc", DigestError::Length { algorithm: "sha256", wanted: 64, found: 3 });
        check(&format!("sha512:{hex}"), DigestError::Length { algorithm: "sha512", wanted: 128, found: 64 });
        check(&format!("sha256:{}", "A".repeat(64)), DigestError::Character { character: 'A' });
        check(&format!("sha256:{hex}\n"), DigestError::Length { algorithm: "sha256", wanted: 64, found: 65 });
        check(&format!("sha256:{}é", "a".repeat(63)), DigestError::Character { character: 'é' });
    }

    proptest! {
        #[test]
        fn streaming_equals_at_once(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..6)) {
            let mut hasher = Digest::hasher();
            for part in &parts {
                hasher.update(part);
            }
            prop_assert_eq!(hasher.finish(), Digest::of(&parts.concat()));
        }

        #[test]
        fn parsing_never_panics_and_round_trips(text in "\\PC{0,140}") {
            if let Ok(digest) = Digest::parse(&text) {
                prop_assert_eq!(digest.to_string(), text);
            }
        }

        #[test]
        fn every_digest_parses(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let digest = Digest::of(&bytes);
            prop_assert_eq!(Digest::parse(digest.as_str()).unwrap(), digest.clone());
            let json = serde_json::to_string(&digest).unwrap();
            prop_assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        }
    }
}
