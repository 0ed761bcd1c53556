//! Which tools of a server are taken.
//!
//! A [`ToolFilter`] speaks of the names a server itself uses, exactly, letter for letter: it runs
//! before tools get their public names. The rules, in order:
//!
//! 1. a name in `exclude` is left out;
//! 2. if there is anything in `include`, a name that is not in it is left out;
//! 3. every other name is taken, so an empty filter takes everything.
//!
//! What a group of callers gets to see is another matter, with other rules.

use std::{collections::BTreeSet, sync::Arc};

use hashbrown::HashSet;

use crate::Tool;

/// The `include` and `exclude` lists of one server.
///
/// ```
/// use toolcrib_catalogue::ToolFilter;
///
/// let filter = ToolFilter::new(["search", "read"], ["read"]);
/// assert!(filter.accepts("search"));
/// assert!(!filter.accepts("read")); // exclude wins
/// assert!(!filter.accepts("write")); // not in include
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// If there is anything in here, nothing else is taken.
    pub include: BTreeSet<String>,
    /// Never taken.
    pub exclude: BTreeSet<String>,
}

/// What a filter says of one name, and the rule that made it say so.
///
/// A `bool` would do to filter by, but not to answer `toolcrib why NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Taken.
    Taken,
    /// In `exclude`.
    Excluded,
    /// There is an `include` list, and the name is not in it.
    NotIncluded,
}

impl ToolFilter {
    /// A filter with these lists.
    pub fn new<T: Into<String>, U: Into<String>>(
        include: impl IntoIterator<Item = T>,
        exclude: impl IntoIterator<Item = U>,
    ) -> Self {
        Self {
            include: include.into_iter().map(Into::into).collect(),
            exclude: exclude.into_iter().map(Into::into).collect(),
        }
    }

    /// What the filter says of `name`, and why.
    pub fn verdict(&self, name: &str) -> Verdict {
        if self.exclude.contains(name) {
            return Verdict::Excluded;
        }
        if !self.include.is_empty() && !self.include.contains(name) {
            return Verdict::NotIncluded;
        }
        Verdict::Taken
    }

    /// Whether `name` passes.
    pub fn accepts(&self, name: &str) -> bool {
        self.verdict(name) == Verdict::Taken
    }

    /// The tools that pass, in the order given.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toolcrib_catalogue::{Json, Tool, ToolFilter};
    ///
    /// let tool = |name: &str| Tool::read(Json::parse(format!(r#"{{"name":"{name}"}}"#)).unwrap());
    /// let tools = [Arc::new(tool("a")?), Arc::new(tool("b")?)];
    /// let taken = ToolFilter { exclude: ["a".to_owned()].into(), ..Default::default() }.apply(&tools);
    /// assert_eq!(taken[0].name, "b");
    /// # Ok::<(), toolcrib_catalogue::ToolFault>(())
    /// ```
    pub fn apply(&self, tools: &[Arc<Tool>]) -> Vec<Arc<Tool>> {
        tools.iter().filter(|it| self.accepts(&it.name)).cloned().collect()
    }

    /// Names in either list that none of `tools` has, so that a slip of the pen is told.
    pub fn unmatched<'a>(&'a self, tools: &[Arc<Tool>]) -> Vec<&'a str> {
        let listed = self.include.iter().chain(&self.exclude).map(String::as_str);
        // A look through the tools for each of a few names is cheaper than a set of all of them.
        if self.include.len() + self.exclude.len() <= 8 {
            return listed.filter(|name| !tools.iter().any(|it| it.name == *name)).collect();
        }
        let known: HashSet<&str> = tools.iter().map(|it| it.name.as_str()).collect();
        listed.filter(|it| !known.contains(it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination of lists over two names, against the rule written down.
    #[test]
    fn exclude_wins_and_an_empty_include_takes_all() {
        let lists: [&[&str]; 4] = [&[], &["a"], &["b"], &["a", "b"]];
        for include in lists {
            for exclude in lists {
                let filter = ToolFilter::new(include.to_vec(), exclude.to_vec());
                for name in ["a", "b", "A", "*", ""] {
                    let taken =
                        !exclude.contains(&name) && (include.is_empty() || include.contains(&name));
                    assert_eq!(filter.accepts(name), taken, "{filter:?} on {name}");
                }
            }
        }
    }
}
