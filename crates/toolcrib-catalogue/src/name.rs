//! `namespace__server__tool`, there and back.
//!
//! These two functions are the seed's, to the letter: no length limit, no look at collisions. What
//! the catalogue makes of them is in [`crate::naming`]. Going back is for display only: the way from
//! a public name to its tool is the catalogue's table, since `__` may stand in any of the parts.

use crate::ToolError;

/// A name of the form `namespace__server__tool`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamespacedName<'a> {
    /// What stands before the first `__`.
    pub namespace: &'a str,
    /// What stands between the first two.
    pub server: &'a str,
    /// The rest.
    pub tool: &'a str,
}

/// The namespace of upstream tools where nothing else is said.
pub const DEFAULT_NAMESPACE: &str = "mcp";

/// `{namespace}__{server}__{tool}`, in which every character of server and tool that is not an
/// ASCII letter or digit is an underscore.
///
/// ```
/// use toolcrib_catalogue::namespace_tool_name;
///
/// assert_eq!(namespace_tool_name("search", "my-server", "mcp"), "mcp__my_server__search");
/// ```
pub fn namespace_tool_name(tool: &str, server: &str, namespace: &str) -> String {
    let mut name = String::with_capacity(namespace.len() + server.len() + tool.len() + 4);
    name.push_str(namespace);
    name.push_str("__");
    push_sanitised(&mut name, server);
    name.push_str("__");
    push_sanitised(&mut name, tool);
    name
}

/// Takes a name of the form `namespace__server__tool` apart, at the first two `__`.
///
/// ```
/// use toolcrib_catalogue::parse_namespaced_name;
///
/// let name = parse_namespaced_name("mcp__my_server__search")?;
/// assert_eq!((name.namespace, name.server, name.tool), ("mcp", "my_server", "search"));
/// assert!(parse_namespaced_name("search").is_err());
/// # Ok::<(), toolcrib_catalogue::ToolError>(())
/// ```
pub fn parse_namespaced_name(name: &str) -> Result<NamespacedName<'_>, ToolError> {
    let parts = name.split_once("__").and_then(|(namespace, rest)| {
        rest.split_once("__").map(|(server, tool)| NamespacedName { namespace, server, tool })
    });
    parts.ok_or_else(|| ToolError::InvalidName(name.to_owned()))
}

/// `text` with `_` for every character that is not an ASCII letter or digit.
pub fn sanitise(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    push_sanitised(&mut clean, text);
    clean
}

fn push_sanitised(to: &mut String, text: &str) {
    to.extend(text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<(&str, &str, &str)>) {
        let parsed = parse_namespaced_name(name).ok();
        assert_eq!(parsed.map(|it| (it.namespace, it.server, it.tool)), expected);
    }

    #[test]
    fn a_name_is_taken_apart_at_the_first_two_separators() {
        check("mcp__s__t", Some(("mcp", "s", "t")));
        check("mcp__srv__my__nested__tool", Some(("mcp", "srv", "my__nested__tool")));
        check("____", Some(("", "", "")));
        check("mcp__srv", None);
        check("", None);
    }

    #[test]
    fn each_odd_character_becomes_one_underscore() {
        assert_eq!(namespace_tool_name("héllo", "日本", "mcp"), "mcp______h_llo");
        assert_eq!(namespace_tool_name("a b/c", "s:1", ""), "__s_1__a_b_c");
    }
}
