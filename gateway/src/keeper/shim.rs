//! The moment between a keeper's fork and the worker's own program.
//!
//! `unsafe` code could do this between `fork` and `exec`; a second `exec` of this binary does it without.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    path::PathBuf,
    process::{Command, ExitCode},
};

use nix::{
    sys::{
        prctl,
        signal::{SigSet, Signal},
    },
    unistd::{Pid, dup2_stdin, getppid},
};

use super::{
    conditions::Conditions,
    limits::{NofileLimit, set_nofile},
};

/// What the shim is told by its keeper: the arguments after `exec-worker`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShimArgs {
    pub(crate) keeper: Pid,
    pub(crate) nofile: Option<NofileLimit>,
    pub(crate) conditions: Conditions,
    pub(crate) directory: PathBuf,
    pub(crate) argv: Vec<OsString>,
}

impl ShimArgs {
    /// # Errors
    /// A path of its conditions is not UTF-8.
    pub(crate) fn write(&self) -> io::Result<Vec<OsString>> {
        let nofile = self.nofile.map_or("-".into(), |limit| format!("{}:{}", limit.soft, limit.hard));
        let conditions = serde_json::to_string(&self.conditions)?;
        let mut args: Vec<OsString> = vec![self.keeper.to_string().into(), nofile.into(), conditions.into()];
        args.push(self.directory.clone().into());
        args.extend(self.argv.iter().cloned());
        Ok(args)
    }

    fn read(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        let keeper = Pid::from_raw(args.next()?.to_str()?.parse().ok()?);
        let nofile = match args.next()?.to_str()? {
            "-" => None,
            limit => {
                let (soft, hard) = limit.split_once(':')?;
                Some(NofileLimit { soft: soft.parse().ok()?, hard: hard.parse().ok()? })
            }
        };
        let conditions = serde_json::from_str(args.next()?.to_str()?).ok()?;
        let directory = args.next()?.into();
        let argv: Vec<OsString> = args.collect();
        (!argv.is_empty()).then_some(Self { keeper, nofile, conditions, directory, argv })
    }
}

/// The hidden subcommand `exec-worker`: becomes the worker. `args` are what follows the subcommand's name.
///
/// Gives the open files limit back, takes on the worker's conditions, asks to be killed with its keeper, and runs the worker's
/// command. Standard input is the
/// keeper's: a failure's text goes there, and its closing by a successful `exec` says that the worker runs. Returns
/// only on failure: 127 if there is no such program, else 126.
pub fn exec_worker(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(args) = ShimArgs::read(args.into_iter()) else {
        eprintln!("gym-gateway exec-worker: for the gateway's own use only");
        return ExitCode::from(2);
    };
    let keeper = match take_stdin() {
        Ok(keeper) => keeper,
        Err(error) => {
            eprintln!("gym-gateway exec-worker: cannot take over standard input: {error}");
            return ExitCode::from(126);
        }
    };
    let Err((message, code)) = become_worker(&args);
    eprintln!("{message}");
    // The keeper may be gone; standard error has it all the same.
    let _ = File::from(keeper).write_all(message.as_bytes());
    ExitCode::from(code)
}

fn take_stdin() -> io::Result<OwnedFd> {
    let keeper = io::stdin().as_fd().try_clone_to_owned()?;
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(keeper)
}

fn become_worker(args: &ShimArgs) -> Result<Infallible, (String, u8)> {
    let failed = |what: &str, error: &dyn std::fmt::Display| (format!("cannot {what}: {error}"), 126);
    SigSet::all().thread_unblock().map_err(|e| failed("unblock signals", &e))?;
    if let Some(limit) = args.nofile {
        set_nofile(limit).map_err(|e| failed("give the limit on open files back", &e))?;
    }
    args.conditions.take_on().map_err(|message| (message, 126))?;
    // Not before: a change of the user takes it back.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(|e| failed("ask for a parent-death signal", &e))?;
    // The keeper may have died before that was in force.
    if getppid() != args.keeper {
        return Err(("the keeper died before the worker was started".into(), 126));
    }
    std::env::set_current_dir(&args.directory)
        .map_err(|e| failed(&format!("change to the working directory {}", args.directory.display()), &e))?;
    let program = &args.argv[0];
    let error = Command::new(program).args(&args.argv[1..]).exec();
    let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
    Err((format!("cannot run {}: {error}", program.display()), code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_way_to_the_shim() {
        for nofile in [None, Some(NofileLimit { soft: 1024, hard: 4096 })] {
            let args = ShimArgs {
                keeper: Pid::from_raw(12),
                nofile,
                conditions: Conditions { nice: Some(3), uid: Some(7), ..Conditions::default() },
                directory: "/a b".into(),
                argv: vec!["sh".into(), "--".into(), "".into()],
            };
            assert_eq!(ShimArgs::read(args.write().unwrap().into_iter()), Some(args));
        }
    }

    #[test]
    fn what_a_keeper_would_not_write_is_refused() {
        for args in [
            &["12", "-", "{}", "/"][..],
            &["x", "-", "{}", "/", "sh"],
            &["12", "1", "{}", "/", "sh"],
            &["12", "-", "-", "/", "sh"],
            &[],
        ] {
            assert_eq!(ShimArgs::read(args.iter().map(OsString::from)), None, "{args:?}");
        }
    }
}
