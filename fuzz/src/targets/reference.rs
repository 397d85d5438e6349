//! Image references, digests, platforms and the dialects of `imageID`.

use scantling_image::{Digest, ImageId, Platform, Reference};

/// What must hold of every text.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(reference) = Reference::parse(text) {
        // The written text is kept, and means the same when it is read again.
        assert_eq!(reference.written(), text);
        let again = Reference::parse(&reference.to_string());
        assert_eq!(again.as_ref(), Ok(&reference));
        // Written anew it leads to the same place.
        let tag = reference.effective_tag().unwrap_or("latest");
        let pinned = reference.with_digest(&Digest::of(b""));
        assert!(pinned.is_pinned());
        let mut anew = vec![pinned];
        anew.extend(reference.with_tag(tag).ok());
        for anew in anew {
            assert_eq!(anew.name(), reference.name());
            let again = Reference::parse(anew.written()).expect("a reference is readable as written");
            assert_eq!(again, anew);
            assert_eq!(
                (again.registry(), again.repository()),
                (reference.registry(), reference.repository())
            );
        }
    }
    if let Ok(digest) = Digest::parse(text) {
        assert_eq!(digest.to_string(), text);
    }
    if let Ok(platform) = Platform::parse(text) {
        let again = Platform::parse(&platform.to_string()).expect("a platform is readable as written");
        assert_eq!(again, platform);
        assert!(platform.matches(&platform));
    }
    if let Ok(id) = ImageId::parse(text) {
        assert!(Digest::parse(&id.digest().to_string()).is_ok());
    }
}
