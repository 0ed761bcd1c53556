//! Programs that are fetched when they are started: `npx`, `uvx` and their like, and whether a version is named.

/// A package whose version is not named.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unpinned {
    package: String,
    registry: Registry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    Npm,
    Python,
}

impl Unpinned {
    /// How it could be written.
    pub(super) fn pinned(&self) -> String {
        let package = &self.package;
        if package.contains("://") || package.contains(':') {
            let mark = if self.registry == Registry::Npm { '#' } else { '@' };
            return format!("{package}{mark}<commit>");
        }
        match self.registry {
            Registry::Npm => format!("{package}@1.2.3"),
            Registry::Python => format!("{package}==1.2.3"),
        }
    }
}

/// Flags that take a value, which is no package.
const VALUED: [&str; 17] = [
    "--python",
    "-p",
    "--index-url",
    "--extra-index-url",
    "--default-index",
    "--index",
    "-i",
    "--registry",
    "--cache",
    "--userconfig",
    "--with-requirements",
    "--directory",
    "--project",
    "--config-file",
    "--prefix",
    "--find-links",
    "-w",
];

/// The package that this command line fetches, if no version of it is named.
pub(super) fn unpinned(command: &str, args: &[&str]) -> Option<Unpinned> {
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let program = program.strip_suffix(".cmd").or(program.strip_suffix(".exe")).unwrap_or(&program);
    let (registry, rest) = match (program, args) {
        // How Windows starts a script.
        ("cmd", ["/c" | "/C", command, rest @ ..]) => return unpinned(command, rest),
        ("npx" | "bunx" | "pnpx", rest)
        | ("pnpm" | "yarn", ["dlx", rest @ ..])
        | ("npm", ["exec" | "x", rest @ ..])
        | ("bun", ["x", rest @ ..]) => (Registry::Npm, rest),
        ("uvx", rest) | ("pipx", ["run", rest @ ..]) | ("uv", ["tool", "run", rest @ ..]) => {
            (Registry::Python, rest)
        }
        _ => return None,
    };
    let fetched = package(registry, rest)?;
    let pinned = match registry {
        Registry::Npm => is_pinned_npm(fetched),
        Registry::Python => is_pinned_python(fetched),
    };
    (!pinned).then(|| Unpinned { package: bare(registry, fetched).to_owned(), registry })
}

/// What is fetched: what a flag names, else the first word.
fn package<'a>(registry: Registry, args: &[&'a str]) -> Option<&'a str> {
    let names: &[&str] = match registry {
        Registry::Npm => &["-p", "--package"],
        Registry::Python => &["--from", "--spec"],
    };
    let mut rest = args.iter().copied();
    while let Some(arg) = rest.next() {
        if names.contains(&arg) {
            return rest.next();
        }
        let joined = arg.split_once('=').filter(|(flag, _)| names.contains(flag));
        if let Some((_, package)) = joined {
            return Some(package);
        }
        if VALUED.contains(&arg) {
            rest.next();
        } else if !arg.starts_with('-') {
            return Some(arg);
        }
    }
    None
}

/// Without the version that does not count.
fn bare(registry: Registry, package: &str) -> &str {
    if package.contains(':') {
        return package;
    }
    match (registry, package.rfind('@')) {
        (_, Some(at)) if 0 < at => &package[..at],
        (Registry::Python, _) => package.split(['=', '<', '>', '~', '!']).next().unwrap_or(package),
        _ => package,
    }
}

/// A path on this machine is what it is.
fn is_local(package: &str) -> bool {
    package.starts_with(['.', '/', '~']) || package.starts_with("file:")
}

fn is_pinned_npm(package: &str) -> bool {
    if is_local(package) || package.ends_with(".tgz") {
        return true;
    }
    // `git+https://…`, `github:user/repo`, `user/repo`.
    let scoped = package.starts_with('@');
    if package.contains(':') || !scoped && package.contains('/') {
        return package.rsplit_once('#').is_some_and(|(_, commit)| is_commit(commit));
    }
    let version = package.rfind('@').filter(|at| 0 < *at).map(|at| &package[at + 1..]);
    version.is_some_and(|it| is_exact(it, 3))
}

fn is_pinned_python(package: &str) -> bool {
    if is_local(package) || package.ends_with(".whl") || package.ends_with(".tar.gz") {
        return true;
    }
    if package.contains("git+") {
        let commit = package.split('#').next().and_then(|it| it.rsplit_once('@'));
        return commit.is_some_and(|(_, commit)| is_commit(commit));
    }
    let equal = package.split_once("==").map(|(_, version)| version.trim_start_matches('='));
    let version = equal.or(package.split_once('@').map(|(_, version)| version));
    version.is_some_and(|it| is_exact(it.trim(), 1))
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// `1.2.3`, and not `1.*`, `^1` or `latest`. Of npm's versions all three numbers count, or a range is meant.
fn is_exact(version: &str, numbers: usize) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-+_!".contains(c);
    let version = version.split(';').next().unwrap_or_default().trim();
    let parts = version.split(['-', '+']).next().unwrap_or_default().split('.');
    let digits = |it: &&str| it.starts_with(|c: char| c.is_ascii_digit());
    version.chars().all(plain) && numbers <= parts.take_while(digits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        unpinned(words[0], &words[1..]).map(|it| it.pinned())
    }

    #[test]
    fn what_has_no_version() {
        let cases = [
            ("npx -y pkg", "pkg@1.2.3"),
            ("npx @scope/pkg --flag", "@scope/pkg@1.2.3"),
            ("npx -y @scope/pkg@latest", "@scope/pkg@1.2.3"),
            ("/usr/bin/npx pkg@^1.2.3", "pkg@1.2.3"),
            ("npx pkg@1", "pkg@1.2.3"),
            ("npx -p pkg run", "pkg@1.2.3"),
            ("npx --package=pkg run@1.2.3", "pkg@1.2.3"),
            ("npx github:user/repo", "github:user/repo#<commit>"),
            ("cmd /c npx -y pkg", "pkg@1.2.3"),
            ("bunx pkg", "pkg@1.2.3"),
            ("pnpm dlx pkg", "pkg@1.2.3"),
            ("npm exec pkg", "pkg@1.2.3"),
            ("uvx pkg", "pkg==1.2.3"),
            ("uvx pkg@latest", "pkg==1.2.3"),
            ("uvx pkg==1.*", "pkg==1.2.3"),
            ("uvx pkg>=1.2", "pkg==1.2.3"),
            ("uvx --python 3.12 pkg", "pkg==1.2.3"),
            ("uvx --from pkg run", "pkg==1.2.3"),
            ("uvx --from git+https://h/r run", "git+https://h/r@<commit>"),
            ("uvx --from git+https://h/r@main run", "git+https://h/r@main@<commit>"),
            ("uv tool run pkg", "pkg==1.2.3"),
            ("pipx run pkg", "pkg==1.2.3"),
        ];
        for (line, hint) in cases {
            assert_eq!(check(line).as_deref(), Some(hint), "{line}");
        }
    }

    #[test]
    fn what_has_one() {
        let pinned = "npx -y pkg@1.2.3|npx @scope/pkg@1.2.3-beta.1 x|npx ./local|npx git+https://h/r#0123abcd|uvx pkg==1.2\
            |uvx pkg@1.2.3|uvx pkg[extra]==1.0.0|uvx --from pkg==1.2 run|uvx --from git+https://h/r@0123abcdef run\
            |pipx run --spec pkg==1 run|node server.js|python -m mod|npm start|uv run server.py|npx|uvx --version|x";
        for line in pinned.split('|') {
            assert_eq!(check(line), None, "{line}");
        }
    }
}
