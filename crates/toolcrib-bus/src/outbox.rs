//! How far events have gone on to somewhere else. The events themselves are the outbox; numbers beside
//! them, in the same file, say which of them have gone.

use rusqlite::Connection;

use crate::store::{mark, set_mark};

/// Who we are to those who see events of several gateways.
pub(crate) const ORIGIN: &str = "origin";

/// Everything up to this one has gone.
pub(crate) const FORWARDED: &str = "forwarded";

/// The place that one got there.
pub(crate) const PLACE: &str = "place";

/// Which there it was.
pub(crate) const BORN: &str = "born";

/// What is known of an outbox when it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) origin: u64,
    pub(crate) forwarded: u64,
    pub(crate) place: u64,
    pub(crate) born: u64,
    /// So many bytes wait.
    pub(crate) bytes: u64,
}

/// Reads them; whoever has no name yet gets one.
pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Marks> {
    let mut origin = mark(connection, ORIGIN)?;
    if origin == 0 {
        let random = uuid::Uuid::now_v7().as_u64_pair().1;
        origin = (random & (u64::MAX >> 1)).max(1);
        set_mark(connection, ORIGIN, origin)?;
    }
    let forwarded = mark(connection, FORWARDED)?;
    let bytes = connection.query_row(
        "SELECT coalesce(sum(length(event) + 128), 0) FROM events WHERE seq > ?1",
        [forwarded],
        |row| row.get(0),
    )?;
    let (place, born) = (mark(connection, PLACE)?, mark(connection, BORN)?);
    Ok(Marks { origin, forwarded, place, born, bytes })
}

/// What may be removed: all that has gone.
pub(crate) fn gone(connection: &Connection) -> rusqlite::Result<u64> {
    mark(connection, FORWARDED)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Bus, Draft, Embedded, Settings, Verified};

    #[tokio::test]
    async fn what_has_not_gone_is_kept_however_old_or_large() {
        let folder = std::env::temp_dir().join(format!("outbox-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("events.db");
        let settings = Settings { retain: Duration::ZERO, max_size: 1, ..Settings::default() };
        let (bus, marks) = Embedded::open_outbox(&path, settings.clone()).unwrap();
        assert_eq!((marks.forwarded, marks.bytes), (0, 0));
        for n in 0..5 {
            bus.append(Draft::new("a.b", n.to_string()).event().unwrap()).await.unwrap();
        }
        bus.set_marks(vec![(FORWARDED, 2), (PLACE, 7)]).unwrap().await.unwrap().unwrap();
        bus.close().await;

        tokio::time::sleep(Duration::from_millis(5)).await;
        let (bus, again) = Embedded::open_outbox(&path, settings).unwrap();
        assert_eq!((again.origin, again.forwarded, again.place), (marks.origin, 2, 7));
        assert!(3 * 128 < again.bytes);
        // The first transaction is followed by putting things in order.
        bus.set_marks(Vec::new()).unwrap().await.unwrap().unwrap();
        bus.close().await;
        let kept = Verified::of(&path).unwrap();
        assert_eq!((kept.first, kept.last), (3, 5), "{kept:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
