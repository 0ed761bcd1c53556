//! What is said when a part of the gateway falls over.

/// Has panics told by `tell`, each in one line: where, and in which words. The usual way would write the words to
/// stderr as they are, and there may be a secret in them, or an escape sequence.
pub fn tell_panics(tell: impl Fn(&str) + Send + Sync + 'static) {
    std::panic::set_hook(Box::new(move |panic| {
        let words = panic.payload_as_str().unwrap_or("without a word");
        let words = toolcrib_wire::text::plain(words.as_bytes());
        match panic.location() {
            Some(place) => tell(&format!("something fell over at {place}: {words}")),
            None => tell(&format!("something fell over: {words}")),
        }
    }));
}
