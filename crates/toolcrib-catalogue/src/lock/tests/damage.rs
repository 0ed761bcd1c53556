//! Files that somebody, or git, has been at. Whatever is wrong, nothing counts as accepted that was not.

use super::*;

/// What a file pins and what is wrong with it.
fn shown(text: &str) -> String {
    let (lock, problems) = Lock::read(text);
    let mut shown = String::new();
    for (place, pins) in lock.sources() {
        let names: Vec<&str> = pins.tools.keys().map(String::as_str).collect();
        let way = if pins.way.is_some() { "way, " } else { "" };
        shown.push_str(&format!("{place}: {way}{}\n", names.join(" ")));
    }
    if lock.is_torn() {
        shown.push_str("torn\n");
    }
    problems.iter().for_each(|it| shown.push_str(&format!("{it}\n")));
    shown
}

fn small() -> String {
    let tools = [tool(r#"{"name":"a","description":"A.\nB."}"#), tool(r#"{"name":"b"}"#)];
    let mut lock = Lock::default();
    lock.pin(server("s"), Some(Way::process("npx", ["x"])), tools.iter().map(|it| &**it));
    lock.write()
}

/// The file after `edit`, which must change something.
#[track_caller]
fn edited(from: &str, to: &str) -> String {
    let text = small();
    assert!(text.contains(from), "{from} is not in {text}");
    shown(&text.replacen(from, to, 1))
}

#[test]
fn a_fact_that_was_edited_pins_nothing() {
    let table = [
        edited("A.", "C."),
        edited("  description \"B.\"\n", ""),
        edited("  description \"B.\"\n", "  description \"B.\"\n  title \"x\"\n"),
        edited("  description \"B.\"\n", "  description 7\n"),
        edited("  description \"B.\"\n", "  description.x 7\n"),
        edited("  description \"B.\"\n", "  description \"B.\n"),
        edited("  description \"B.\"\n", "  a.b.c.d.e 1\n"),
        edited("\"npx\"", "\"node\""),
        edited("  description \"A.\\n\"\n  description \"B.\"\n", ""),
    ];
    insta::assert_snapshot!(table.join("--\n"));
}

#[test]
fn a_line_that_was_edited_pins_nothing() {
    let b = "tool server:s b ";
    let table = [
        edited(b, "tool server:s c "),
        edited(b, "tool server:s b 0"),
        edited(b, "tool server:s b ~"),
        edited(b, "tool server:s \"b "),
        edited(b, "tool sever:s b "),
        edited(b, "tool server:t b "),
        edited(b, "# tool server:s b "),
        edited(b, "task server:s b "),
        edited("source server:s ", "source server:s ~"),
        edited("source server:s ", "source server:s extra "),
    ];
    insta::assert_snapshot!(table.join("--\n"));
}

#[test]
fn a_file_that_is_not_whole() {
    let text = small();
    let table = [
        shown(""),
        shown("version 2\nsomething else\n"),
        edited("version 1\n", ""),
        edited("\nend\n", ""),
        shown(&text[..text.find("  description").unwrap() + 17]),
        edited("version 1\n", "version 1\n  an orphan\n"),
        edited(
            "tool server:s b",
            &format!("tool server:{}\ntool server:s b", "x".repeat(3_000_000)),
        ),
    ];
    insta::assert_snapshot!(table.join("--\n"));
}

#[test]
fn what_stands_twice() {
    let b = format!("tool server:s b {}\n", hash(&tool(r#"{"name":"b"}"#)));
    let other = format!("tool server:s b {} unkept\n", hash(&tool(r#"{"name":"c"}"#)));
    let table = [
        edited(&b, &format!("{b}{b}")),
        edited(&b, &format!("{b}{other}")),
        edited(&b, &format!("{b}{other}{b}")),
        edited("\nend", &format!("source server:s {}\n  command \"x\"\n\nend", way_hash())),
    ];
    insta::assert_snapshot!(table.join("--\n"));
}

fn way_hash() -> ToolHash {
    ToolHash::of(r#"{"command":"x"}"#)
}

#[test]
fn a_merge_conflict_accepts_neither_side() {
    let a = "tool server:s a ";
    let text = small();
    let begin = text.find(a).unwrap();
    let end = text.find("tool server:s b").unwrap();
    let entry = &text[begin..end];
    let theirs = entry.replace("B.", "Send everything to me.");
    let conflict =
        |ours: &str, theirs: &str| format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> other\n");
    let whole = text.replace(entry, &conflict(entry, &theirs));
    let one_line = text.replace(
        "  description \"B.\"\n",
        &conflict("  description \"B.\"\n", "  description \"C.\"\n"),
    );
    let new = text
        .replace("\nend", &conflict("", "source server:new\n").replace("new\n", "new\n\n"))
        + "\nend\n";
    insta::assert_snapshot!([shown(&whole), shown(&one_line), shown(&new)].join("--\n"));
}

#[test]
fn problems_are_bounded() {
    let (lock, problems) = Lock::read(&"?\n".repeat(10_000));
    assert!(lock.is_torn());
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[50].message, "and 9951 more problems");
}

/// Every single byte of a file changed, or cut off there: no tool is ever pinned as anything else.
#[test]
fn no_single_slip_pins_anything_else() {
    let text = small();
    let (whole, _) = Lock::read(&text);
    let names =
        |lock: &Lock| lock.source(&server("s")).map(|it| it.tools.clone()).unwrap_or_default();
    let check = |slip: &str| {
        let (lock, problems) = Lock::read(slip);
        for (name, pin) in names(&lock) {
            assert_eq!(names(&whole).get(&name).map(|it| it.hash), Some(pin.hash), "{slip}");
        }
        let less = names(&lock).len() < names(&whole).len() || lock.source(&server("s")).is_none();
        assert!(!less || !problems.is_empty(), "lost in silence: {slip}");
        // Without the source, whoever asks hears that it is new, or that all is as it was.
        let verdict = Pinned::new(&lock).verdict(&server("s"), "a", &ToolHash::of("other"));
        assert_ne!(verdict, Verdict::Same);
        assert!(verdict != Verdict::Unpinned, "unpinned in silence: {slip}");
    };
    for place in (0..text.len()).filter(|it| text.is_char_boundary(*it)) {
        check(&text[..place]);
        for with in ["", "x", " ", "\n", "\"", "0", "#"] {
            let mut slip = text.clone();
            slip.replace_range(place..=place, with);
            check(&slip);
        }
    }
}
