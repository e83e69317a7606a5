//! What the whole process does: its arguments, then the words of `STUB_ARGS`.

use std::path::PathBuf;

/// Something that a process does wrong, or differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Say why on both streams and exit with status 3 before listening.
    ExitAtOnce,
    /// Run, but never listen.
    NeverListen,
    /// Listen and take requests, but never answer one.
    NeverAnswer,
    /// Answer probes with 503 until the gate `ready` opens.
    Unready,
    /// Take no notice of SIGTERM.
    IgnoreSigterm,
    /// Close the connection after each reply without having said so.
    CloseIdle,
    /// Leave a double-forked child behind that holds the listening socket.
    Stray,
    /// Refuse to be one of several workers when asked by a dry run.
    RefuseSeveral,
    /// Set no session cookie on a probe's reply.
    NoProbeCookie,
    /// Take 64 MiB of memory before listening.
    Hoard,
    /// Say what it is only when the gate `describe` opens.
    DescribeLate,
}

impl Behaviour {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "exit-at-once" => Self::ExitAtOnce,
            "never-listen" => Self::NeverListen,
            "never-answer" => Self::NeverAnswer,
            "unready" => Self::Unready,
            "ignore-sigterm" => Self::IgnoreSigterm,
            "close-idle" => Self::CloseIdle,
            "stray" => Self::Stray,
            "refuse-several" => Self::RefuseSeveral,
            "no-probe-cookie" => Self::NoProbeCookie,
            "hoard" => Self::Hoard,
            "describe-late" => Self::DescribeLate,
            _ => return None,
        })
    }
}

/// The process's script.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--socket`, or `GYM_WORKER_SOCKET`.
    pub socket: Option<PathBuf>,
    /// `--port`, or `PORT`, or the port of the one server in `NEMO_GYM_CONFIG_DICT`.
    pub port: Option<u16>,
    /// `--report`: the socket on which the test listens; none: nothing is reported.
    pub report: Option<PathBuf>,
    /// `--cookie`: the session cookie's name; default `Stub___stub`.
    pub cookie: String,
    /// `--secret`: what signs it; default: its name.
    pub secret: Option<String>,
    /// `GYM_WORKER_SLOT`; 0 without it.
    pub slot: u16,
    /// `GYM_WORKER_GENERATION`; 1 without it.
    pub generation: u32,
    /// Whether this is only a dry run.
    pub dry_run: bool,
    /// `--describe`: whether it is only asked what it is.
    pub describe: bool,
    /// `--describes`: the answer to that; without it the question is not known.
    pub describes: Option<String>,
    /// `--backlog`: how many connections may wait to be accepted, on a socket.
    pub backlog: Option<u32>,
    behaviours: Vec<Behaviour>,
    only_slot: Option<u16>,
    only_generation: Option<u32>,
}

impl Options {
    /// Reads arguments and environment; arguments win. Unknown words that do not begin with `--` are passed over
    /// (a server's script).
    pub fn parse(args: &[String], env: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut options = Self { cookie: "Stub___stub".into(), ..Self::default() };
        options.socket = env("GYM_WORKER_SOCKET").map(PathBuf::from);
        options.port = number(env("PORT"))?;
        options.slot = number(env("GYM_WORKER_SLOT"))?.unwrap_or(0);
        options.generation = number(env("GYM_WORKER_GENERATION"))?.unwrap_or(1);
        if let Some(config) = env("NEMO_GYM_CONFIG_DICT") {
            options.read_gym_config(&config)?;
        }
        let more = env("STUB_ARGS").unwrap_or_default();
        let mut words = more.split_whitespace().map(str::to_owned).chain(args.iter().cloned());
        while let Some(word) = words.next() {
            if word == "--describe" && options.describes.is_some() {
                options.describe = true;
            } else if word.starts_with("--") {
                let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
                options.set(&word, value)?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: String) -> Result<(), String> {
        match key {
            "--socket" => (self.socket, self.port) = (Some(value.into()), None),
            "--port" => (self.port, self.socket) = (number(Some(value))?, None),
            "--report" => self.report = Some(value.into()),
            "--cookie" => self.cookie = value,
            "--secret" => self.secret = Some(value),
            "--describes" => self.describes = Some(value),
            "--backlog" => self.backlog = number(Some(value))?,
            "--only-slot" => self.only_slot = number(Some(value))?,
            "--only-generation" => self.only_generation = number(Some(value))?,
            "--behave" => {
                self.behaviours
                    .push(Behaviour::named(&value).ok_or_else(|| format!("no behaviour {value}"))?);
            }
            _ => return Err(format!("no option {key}")),
        }
        Ok(())
    }

    /// What an unmodified NeMo Gym server reads: host and port of its own block, and `dry_run`. The file is JSON here.
    fn read_gym_config(&mut self, text: &str) -> Result<(), String> {
        let config: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("NEMO_GYM_CONFIG_DICT: {error}"))?;
        self.dry_run = config["dry_run"] == true;
        let path = std::env::var("NEMO_GYM_CONFIG_PATH").unwrap_or_default();
        let block =
            config[path.as_str()]["resources_servers"].as_object().and_then(|kinds| kinds.values().next());
        if let Some(port) = block.and_then(|block| block["port"].as_u64()) {
            (self.port, self.socket) = (u16::try_from(port).ok(), None);
        }
        Ok(())
    }

    /// The session cookie's secret.
    pub fn secret(&self) -> &str {
        self.secret.as_deref().unwrap_or(&self.cookie)
    }

    /// Whether this process is to behave so: a behaviour may be limited to one slot or generation.
    pub fn has(&self, behaviour: Behaviour) -> bool {
        self.behaviours.contains(&behaviour)
            && self.only_slot.is_none_or(|slot| slot == self.slot)
            && self.only_generation.is_none_or(|generation| generation == self.generation)
    }
}

fn number<T: std::str::FromStr>(text: Option<String>) -> Result<Option<T>, String> {
    text.map(|text| text.parse().map_err(|_| format!("not a number: {text}"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str], env: &[(&str, &str)]) -> Options {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let env = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_string());
        Options::parse(&args, env).unwrap()
    }

    #[test]
    fn arguments_win_over_the_environment() {
        let options =
            parse(&["app.py", "--port", "7"], &[("GYM_WORKER_SOCKET", "/a"), ("GYM_WORKER_SLOT", "3")]);
        assert_eq!((options.port, options.socket, options.slot), (Some(7), None, 3));
    }

    #[test]
    fn a_stub_that_was_given_no_answer_does_not_know_the_question() {
        assert!(parse(&["--describes", "{}", "--describe"], &[]).describe);
        let args = ["--describe".to_owned()];
        assert_eq!(Options::parse(&args, |_| None).unwrap_err(), "--describe needs a value");
    }

    #[test]
    fn a_behaviour_may_be_one_generations() {
        let words = "--behave unready --only-slot 1 --only-generation 2";
        let second = [("STUB_ARGS", words), ("GYM_WORKER_SLOT", "1"), ("GYM_WORKER_GENERATION", "2")];
        assert!(parse(&[], &second).has(Behaviour::Unready));
        assert!(!parse(&[], &second[..2]).has(Behaviour::Unready));
    }
}
