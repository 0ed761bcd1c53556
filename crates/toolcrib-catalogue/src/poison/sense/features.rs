//! What a sentence does that a description has no reason to do.
//!
//! A feature holds where the sentence has a concept of each of its sets and none of `not`. Each has
//! a weight from [`super::weights`]; `guess` is what its weight would be if no example spoke of it,
//! and its sign never changes: what looks bad to a person does not count in favour.

use super::super::Kind;
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "a vocabulary"))]
use super::lexicon::*;

/// One thing a sentence may do.
pub(super) struct Feature {
    /// In a reader's words.
    pub(super) says: &'static str,
    pub(super) kind: Kind,
    #[cfg_attr(not(test), expect(dead_code, reason = "read where weights are learned"))]
    pub(super) guess: f64,
    all: &'static [Set],
    not: Set,
}

impl Feature {
    pub(super) fn holds(&self, sentence: Set) -> bool {
        sentence & self.not == 0 && self.all.iter().all(|it| sentence & it != 0)
    }
}

/// Where a sentence stands if nothing is known of it.
#[cfg(test)]
pub(super) const BASE_GUESS: f64 = -3.0;

const fn f(kind: Kind, guess: f64, says: &'static str, all: &'static [Set], not: Set) -> Feature {
    Feature { says, kind, guess, all, not }
}

const I: Kind = Kind::Instruction;
const T: Kind = Kind::Theft;
const C: Kind = Kind::Conditioning;
const STUFF: Set = OFF_SECRET | OFF_CHAT | OFF_PRIVATE;
const PEOPLE: Set = USER | NOBODY;

/// All features. Those with a guess below 0 speak for a sentence.
#[rustfmt::skip]
pub(super) const FEATURES: &[Feature] = &[
    f(I, 0.8, "speaks of the model", &[OFF_MODEL], 0),
    f(I, 1.0, "tells the model what it has to do", &[OFF_MODEL, DUTY | YOU | PLEASE | ORDER], 0),
    f(I, 0.8, "holds whatever was asked", &[ANYHOW, YOU | USER | ORDER | ASK | TALK | DUTY], 0),
    f(I, 0.8, "wants to be taken for somebody else's word", &[ASIF, USER | SYSTEM, OBEY | RUN | TALK | TOOL | ASK | DUTY | ANSWER], 0),
    f(I, 0.4, "speaks to you", &[YOU], 0),
    f(I, 0.5, "says what you have to do", &[YOU, DUTY], 0),
    f(I, 0.3, "gives an order", &[ORDER], OPENING),
    f(I, 0.3, "asks politely", &[PLEASE], OPENING),
    f(I, 0.6, "is about keeping something hidden", &[HIDE], OPENING),
    f(I, 1.5, "keeps something from people", &[HIDE, PEOPLE | YOU], OPENING),
    f(I, 1.0, "says what is not to be told", &[NOT_TELL], CARE),
    f(I, 1.2, "says what people are not to be told", &[NOT_TELL, PEOPLE], 0),
    f(I, 1.2, "says what people are not to know", &[NOT_KNOW, PEOPLE, DUTY | EVERY | YOU | TOOL | ORDER], 0),
    f(I, 0.8, "says what people are not to know", &[NOT_KNOW, PEOPLE], 0),
    f(I, 1.0, "says what is not to be told", &[NOT_TELL, YOU | ORDER | TOOL | ANSWER], 0),
    f(I, 1.5, "does without anybody's consent", &[NOT_ASK], 0),
    f(I, 1.0, "does without anybody's consent", &[NOT_ASK, PEOPLE | YOU | ORDER | DUTY], 0),
    f(I, 1.2, "sets rules aside", &[IGNORE | SKIP, OFF_RULES], 0),
    f(I, 1.2, "sets rules aside", &[IGNORE | NOT_OBEY | ANEW | FRESH, OFF_RULES, YOU | OFF_MODEL | EARLIER | SYSTEM], 0),
    f(I, 1.0, "sets aside what people asked for", &[IGNORE, PEOPLE | EARLIER | YOU, TALK | CHAT | RULES | ANSWER | EARLIER], 0),
    f(I, 0.8, "speaks of rules for you", &[OFF_RULES, YOU | OFF_MODEL], 0),
    f(I, 0.8, "says that rules have changed", &[ANEW, YOU | OFF_MODEL], 0),
    f(I, 1.3, "wants to be obeyed", &[OBEY, TOOL | OFF_ANSWER | OWN | OFF_TALK | OFF_RULES], NOT_OBEY),
    f(I, 0.8, "wants to be taken for somebody else's word", &[OBEY, USER | SYSTEM | OFF_MODEL], NOT_OBEY | CARE),
    f(I, 1.2, "asks for something to be claimed or praised", &[LIE], OPENING),
    f(I, 0.8, "asks for something to be claimed or praised", &[LIE, PEOPLE | YOU | ORDER | DUTY], 0),
    f(I, 1.0, "says what every answer has to be", &[OFF_ANSWER | OFF_TALK | OFF_CHAT, EVERY, DUTY | ORDER | YOU | RUN], 0),
    f(I, 0.7, "says what your answers have to be", &[OFF_ANSWER, YOU | OFF_MODEL, DUTY | NOT], CARE),
    f(I, 0.8, "wants to come before everything", &[BEFORE, EVERY, RUN | YOU | DUTY], NAMED),
    f(I, 0.8, "speaks of rights it gives or needs", &[OFF_POWER, YOU | OFF_MODEL | ORDER | NOT | SYSTEM], 0),
    f(I, 0.6, "speaks as the system", &[SYSTEM, YOU | OFF_MODEL | DUTY | USER | OFF_RULES | OFF_POWER], 0),
    f(T, 0.8, "speaks of secrets though the tool is not about them", &[OFF_SECRET], IN_PARAM),
    f(T, 0.8, "speaks of the conversation though the tool is not about it", &[OFF_CHAT], 0),
    f(T, 0.6, "speaks of private matters though the tool is not about them", &[OFF_PRIVATE], IN_PARAM),
    f(T, 1.2, "wants secrets handed over", &[PUT | SEND, OFF_SECRET], 0),
    f(T, 1.2, "wants the conversation handed over", &[PUT | SEND | WHOLE | EVERY, OFF_CHAT], 0),
    f(T, 1.0, "wants private matters handed over", &[PUT | SEND, OFF_PRIVATE], 0),
    f(T, 1.0, "wants secrets looked for", &[READ, OFF_SECRET], 0),
    f(T, 0.8, "wants files handed over", &[PUT | SEND, OFF_FILES, YOU | USER | EVERY | ORDER | WHOLE], NAMED),
    f(T, 1.3, "wants all of what was said before", &[EARLIER | WHOLE, OFF_CHAT | OFF_TALK, USER | OFF_CHAT, YOU | USER | IN_PARAM | PUT | SEND], 0),
    f(T, 1.0, "wants such things in a parameter", &[STUFF, PARAM | OWN | QUOTED], IN_PARAM),
    f(T, 1.0, "wants what was said before in a parameter", &[EARLIER | WHOLE, OFF_CHAT | OFF_TALK, IN_PARAM, USER | OFF_CHAT], 0),
    f(T, 1.0, "wants the conversation in a parameter", &[OFF_CHAT, IN_PARAM], 0),
    f(T, 0.8, "wants more than the parameter is for", &[OFF_SECRET | OFF_PRIVATE, IN_PARAM, YOU | OFF_MODEL | EARLIER | EVERY | ORDER], 0),
    f(T, 0.8, "has to have such things", &[STUFF, DUTY | ORDER | PLEASE], 0),
    f(T, 0.8, "wants things of the user", &[STUFF, USER | YOU | OFF_MODEL, PUT | SEND | READ | EARLIER | WHOLE | EVERY], 0),
    f(T, 1.0, "sends to a fixed address", &[SEND | PUT, ADDRESS], OPENING),
    f(T, 0.8, "sends such things away", &[SEND, STUFF | OFF_FILES | OFF_TALK, ADDRESS | EVERY | USER], 0),
    f(C, 0.5, "speaks of other tools", &[TOOL, OTHER], OPENING),
    f(C, 1.0, "says what is to be done with other tools", &[TOOL, OTHER, CHANGE | PUT | SEND | NOT | STATE | ADDRESS], 0),
    f(C, 0.8, "says what goes with any tool", &[TOOL, EVERY, WHEN | ORDER | DUTY | YOU], OPENING),
    f(C, 0.8, "says what goes with every use of another tool", &[NAMED, EVERY, DUTY | RUN | PUT | CHANGE | SEND], 0),
    f(C, 0.8, "says what has to be written elsewhere", &[NAMED, DUTY | PUT, QUOTED], 0),
    f(C, 1.0, "is to be used alone", &[NOT_ACT | NOT | IGNORE, OTHER, TOOL, EVERY | NOT_ACT | ORDER], 0),
    f(C, 1.0, "says that other tools are bad", &[TOOL | NAMED, OTHER | NAMED, STATE], 0),
    f(C, 0.5, "says what is to be done when other tools are used", &[NAMED, WHEN | EVERY, PUT | CHANGE | SEND | DELETE], 0),
    f(C, 0.7, "asks for changes when something is done elsewhere", &[WHEN | EVERY, CHANGE | DELETE, USER | TOOL | OFF_MONEY | YOU], OPENING),
    f(C, 0.8, "speaks of payments though the tool is not about them", &[OFF_MONEY], OPENING),
    f(C, 1.0, "says where money goes", &[OFF_MONEY, PUT | CHANGE | SEND | WHEN], OPENING),
    f(I, -1.0, "is what the tool does", &[OPENING], 0),
    f(I, -1.5, "asks the user first", &[CARE], 0),
    f(I, -1.5, "asks the user first", &[CARE, ORDER | BEFORE], 0),
    f(I, -1.5, "forbids doing so", &[NOT_ACT, SECRET | PRIVATE | CHAT | FILES | ADDRESS], 0),
    f(I, -0.8, "says what is kept safe", &[SAFE, SECRET | PRIVATE | CHAT | FILES], 0),
    f(I, -1.0, "says how tools of one server go together", &[NAMED, RUN | BEFORE], EVERY | OTHER),
];
