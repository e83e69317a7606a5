//! Where to listen.

use std::fmt;
use std::path::PathBuf;

use super::ServeError;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// Host and port; port 0 takes a free one.
    Tcp(String, u16),
}

impl Address {
    /// Chooses from environment and arguments. Arguments of other names are the program's own.
    pub(super) fn choose(
        variable: impl Fn(&str) -> Option<String>,
        arguments: impl Iterator<Item = String>,
    ) -> Result<Self, ServeError> {
        // An empty one is none: a shell's way to unset it, and a socket without a path is one that nobody finds.
        let variable = |name| variable(name).filter(|value| !value.is_empty());
        if let Some(path) = variable("GYM_WORKER_SOCKET") {
            return Ok(Self::Unix(path.into()));
        }
        let loopback = || "127.0.0.1".to_owned();
        if let Some(value) = variable("PORT") {
            return Ok(Self::Tcp(loopback(), port("PORT", value)?));
        }
        let (mut host, mut chosen) = (None, None);
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let mut value =
                |name| value.clone().or_else(|| arguments.next()).ok_or(ServeError::NoValue(name));
            match name {
                "--host" => host = Some(value("--host")?),
                "--port" => chosen = Some(port("--port", value("--port")?)?),
                _ => {}
            }
        }
        let port = chosen.ok_or(ServeError::NoAddress)?;
        Ok(Self::Tcp(host.unwrap_or_else(loopback), port))
    }
}

fn port(name: &'static str, value: String) -> Result<u16, ServeError> {
    value.parse().map_err(|_| ServeError::BadPort { name, value })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(variables: &[(&str, &str)], arguments: &[&str]) -> Result<Address, String> {
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
        Address::choose(variable, arguments.iter().map(|a| (*a).to_owned()))
            .map_err(|error| error.to_string())
    }

    fn tcp(host: &str, port: u16) -> Result<Address, String> {
        Ok(Address::Tcp(host.to_owned(), port))
    }

    #[test]
    fn the_socket_comes_before_the_port_and_that_before_arguments() {
        let all = [("PORT", "1"), ("GYM_WORKER_SOCKET", "/s")];
        assert_eq!(choose(&all, &["--port", "2"]), Ok(Address::Unix("/s".into())));
        assert_eq!(choose(&all[..1], &["--port", "2"]), tcp("127.0.0.1", 1));
        assert_eq!(choose(&[("GYM_WORKER_SOCKET", ""), ("PORT", "")], &["--port", "2"]), tcp("127.0.0.1", 2));
        assert_eq!(choose(&[], &["--port", "2"]), tcp("127.0.0.1", 2));
        assert_eq!(choose(&[], &["serve", "--port=2", "--verbose", "--host", "::1"]), tcp("::1", 2));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(choose(&[], &[]).unwrap_err().contains("GYM_WORKER_SOCKET"));
        assert!(choose(&[], &["--host", "::1"]).unwrap_err().contains("--port"));
        assert_eq!(choose(&[], &["--port"]).unwrap_err(), "--port needs a value");
        assert!(choose(&[("PORT", "70000")], &[]).unwrap_err().starts_with("PORT is no port: \"70000\""));
    }
}
