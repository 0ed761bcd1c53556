//! Who may ask, and how: the gateway.
//!
//! In reading order: `access` says who is asking and what they may see, `shape` in what form; `slot` is a source in its place; `snapshot` is the catalogue as
//! it is just now, with a prepared list for every group; `gateway` keeps it current; `dispatch` answers
//! one request, whatever it came over; `visit` is a client that stays, `stream` and `queue` what goes out to it,
//! `watching` and `changes` what it hears of, `rounds` how a legacy client answers a modern server, `going` a request on its way to a source,
//! `others` how a tool of our own calls another; `events` who may have which events, and `built_in`
//! the tools that are part of the gateway, `calling` one call, `guard` what it passes on its way, `metrics` what is counted, `keeping` what becomes of a result that is too large, `recording` what is
//! written down of calls; `finding` finds tools, `cost` says what lists cost; `webhooks` who is told of events; `spans` what is told of calls to those who trace them; `console` a page to look at all this with; `session` and `http`, and `stdio`, are the doors.
//!
//! Nothing here names a kind of source, reads a file or looks into the environment.

mod words;
mod access;
mod shape;
mod cost;
mod slot;
mod snapshot;
mod finding;
mod gateway;
mod queue;
mod stream;
mod visit;
mod watching;
mod changes;
mod rounds;
mod going;
mod others;
mod events;
mod built_in;
mod dispatch;
mod metrics;
mod guard;
mod calling;
mod reading;
mod keeping;
mod recording;
mod webhooks;
mod spans;
mod session;
mod console;
mod http;
mod stdio;
mod socket;

pub use access::{Access, AccessSettings, Caller, Denied, GroupSettings, Lists, Pattern, Scraping};
pub use console::{Operator, Recorded, Usage};
pub use gateway::{Gateway, Input, Settings};
pub use guard::audit::{
    Audit, AuditMode, AuditSettings, Broken, Records, Shown, Verified, find_call, verify,
};
pub use guard::{
    cache::{CacheRule, CacheSettings},
    limits::{Limit, LimitSettings, Rate},
    remarks::{About, Remark, remarks},
    rules::{PoisonRule, ResultRule, Rules},
};
pub use http::{Door, Endpoint, HttpSettings, Tls, Who, endpoints};
pub use shape::{GroupShape, Inline, Shapes, ViewStyle};
pub use slot::Left;
pub use socket::{Hello, serve_socket};
pub use spans::TraceSettings;
pub use stdio::{read_line, serve_lines, serve_stdio};
pub use webhooks::{Secret, Webhook, WebhookError};
pub use words::{BLAMES, CODES, META_KEYS, Meaning, OUTCOMES, RPC_CODES};
