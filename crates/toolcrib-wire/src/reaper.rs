//! The end of our children when we are killed.
//!
//! A process that dies of SIGKILL cannot clean up, so somebody else must know its children. That is
//! one small shell for the whole gateway, which reads the ids of process groups from a pipe. When the
//! pipe ends, whatever the reason, it ends the groups it still knows. Unlike a parent-death signal
//! this reaches grandchildren (what `npx` starts), works beyond Linux, and needs no unsafe code.

use std::{
    io::Write,
    process::{Child, ChildStdin, Command, Stdio},
};

use parking_lot::Mutex;

const SCRIPT: &str = r#"
groups=" "
while read -r verb group; do
  case $verb in
    add) groups="$groups$group " ;;
    del) case $groups in *" $group "*) groups="${groups%% $group *} ${groups#* $group }" ;; esac ;;
  esac
done
[ "$groups" = " " ] && exit
for group in $groups; do kill -TERM "-$group"; done 2>/dev/null
sleep 1
for group in $groups; do kill -KILL "-$group"; done 2>/dev/null
"#;

/// Ends the process groups it knows when this process ends, however it ends.
#[derive(Debug, Default)]
pub struct Reaper {
    shell: Mutex<Option<Shell>>,
}

#[derive(Debug)]
struct Shell {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Reaper {
    /// A reaper that starts its shell when there is something to watch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Watches a process group from now on.
    pub fn add(&self, group: u32) {
        self.tell("add", group);
    }

    /// Watches it no longer.
    pub fn remove(&self, group: u32) {
        self.tell("del", group);
    }

    fn tell(&self, verb: &str, group: u32) {
        let mut shell = self.shell.lock();
        if shell.is_none() {
            match Shell::start() {
                Ok(started) => *shell = Some(started),
                Err(error) => {
                    tracing::warn!(%error, "no `sh`: servers may outlive a killed toolcrib");
                    return;
                }
            }
        }
        let pipe = shell.as_mut().and_then(|it| it.pipe.as_mut());
        if let Some(Err(error)) = pipe.map(|it| writeln!(it, "{verb} {group}")) {
            tracing::warn!(%error, "the reaper is gone: servers may outlive a killed toolcrib");
            *shell = None;
        }
    }
}

impl Shell {
    fn start() -> std::io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        #[cfg(unix)]
        // A Ctrl-C on the terminal is for us, not for the one who cleans up after us.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.pipe = None;
        // With nothing left to watch the shell ends at once; with something, init collects it.
        for _ in 0..20 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}
