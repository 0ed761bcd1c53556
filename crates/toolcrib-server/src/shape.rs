//! In what shape a group gets things: which tools its list shows, and how large a result may be.
//!
//! A shape never decides what may be called or read; [`crate::Access`] does.

use crate::access::Pattern;

/// What the list of tools shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ViewStyle {
    /// Every tool that the group may call.
    #[default]
    All,
    /// The tools that find, describe and call the others, and those that are pinned.
    Search,
    /// Whichever costs the model fewer tokens.
    Auto,
}

/// How large a result may be that a client gets whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inline {
    /// As large as it is.
    Everything,
    /// So many bytes; a larger one is kept, and the client gets a summary.
    UpTo(usize),
}

/// The shapes that are configured.
#[derive(Debug, Clone, Default)]
pub struct Shapes {
    /// What lists show where a group says nothing.
    pub view: ViewStyle,
    /// What results may be where neither tool nor group says anything.
    pub inline: Option<Inline>,
    /// What results of single tools may be.
    pub tools: Vec<(Pattern, Inline)>,
}

/// The shape of one group, where it differs.
#[derive(Debug, Clone, Default)]
pub struct GroupShape {
    /// What its list shows.
    pub view: Option<ViewStyle>,
    /// What its list shows in any case, by public name.
    pub pinned: Vec<Pattern>,
    /// What results may be.
    pub inline: Option<Inline>,
    /// Whether arguments that are harmlessly wrong are put right.
    pub repairs: bool,
}

impl Shapes {
    /// How large a result of this tool may be for a group. The tool's own rule goes first, the one that
    /// says most among several.
    pub(crate) fn limit(&self, group: &GroupShape, tool: &str) -> Option<usize> {
        let own = self.tools.iter().filter(|(it, _)| it.matches(tool));
        let own = own.max_by_key(|(it, _)| (!it.0.contains('*'), it.0.len())).map(|(_, it)| *it);
        match own.or(group.inline).or(self.inline) {
            Some(Inline::UpTo(limit)) => Some(limit),
            Some(Inline::Everything) | None => None,
        }
    }

    /// Whether some result may be too large for a group.
    pub(crate) fn limits(&self, group: &GroupShape) -> bool {
        let limited = |it: Inline| matches!(it, Inline::UpTo(_));
        group.inline.or(self.inline).is_some_and(limited)
            || self.tools.iter().any(|(_, it)| limited(*it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_goes_before_a_group_and_a_group_before_all() {
        let rule = |name: &str, inline| (Pattern(name.into()), inline);
        let shapes = Shapes {
            inline: Some(Inline::UpTo(16)),
            tools: vec![
                rule("db_*", Inline::UpTo(64)),
                rule("db_dump", Inline::Everything),
                rule("*", Inline::UpTo(1)),
            ],
            ..Shapes::default()
        };
        let group = GroupShape { inline: Some(Inline::UpTo(8)), ..GroupShape::default() };
        let limit = |tool| shapes.limit(&group, tool);
        assert_eq!([limit("db_query"), limit("db_dump"), limit("x")], [Some(64), None, Some(1)]);
        let shapes = Shapes { tools: Vec::new(), ..shapes };
        assert_eq!(shapes.limit(&group, "x"), Some(8));
        assert_eq!(shapes.limit(&GroupShape::default(), "x"), Some(16));
        let all = GroupShape { inline: Some(Inline::Everything), ..GroupShape::default() };
        assert_eq!((shapes.limit(&all, "x"), shapes.limits(&all)), (None, false));
        assert!(shapes.limits(&GroupShape::default()) && !Shapes::default().limits(&all));
    }
}
