//! Who we are to NATS, and where it is. Secrets stay in here: nothing prints them.

use std::{fmt, path::PathBuf};

use async_nats::Auth;

use super::subject::unescape;
use crate::BusError;

/// How NATS knows us.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Login {
    /// By nothing, or by what stands in the address.
    #[default]
    Anonymous,
    /// By a name and a password.
    Password {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
    /// By a token.
    Token(String),
    /// By a key: its seed.
    Nkey(String),
    /// By a file of credentials, as `nsc` writes it. It is read anew with every connection.
    CredentialsFile(PathBuf),
    /// By what such a file says.
    Credentials(String),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Password { user, .. } => write!(f, "Password({user:?}, ****)"),
            Self::Token(_) => f.write_str("Token(****)"),
            Self::Nkey(_) => f.write_str("Nkey(****)"),
            Self::CredentialsFile(path) => f.debug_tuple("CredentialsFile").field(path).finish(),
            Self::Credentials(_) => f.write_str("Credentials(****)"),
        }
    }
}

/// What is shown to NATS when it asks who we are.
#[derive(Clone)]
pub(crate) enum Proof {
    Nothing,
    Password(String, String),
    Token(String),
    /// A key's seed, and what says that it may be used.
    Key(String, Option<String>),
}

impl Proof {
    /// Answers NATS, which wants this signed.
    pub(crate) fn answer(&self, nonce: &[u8]) -> Result<Auth, String> {
        let mut auth = Auth::new();
        match self {
            Self::Nothing => {}
            Self::Password(user, password) => {
                (auth.username, auth.password) = (Some(user.clone()), Some(password.clone()));
            }
            Self::Token(token) => auth.token = Some(token.clone()),
            Self::Key(seed, jwt) => {
                let bad = |_error: nkeys::error::Error| "the key cannot be used".to_owned();
                let pair = nkeys::KeyPair::from_seed(seed).map_err(bad)?;
                auth.signature = Some(pair.sign(nonce).map_err(bad)?);
                auth.jwt = jwt.clone();
                auth.nkey = jwt.is_none().then(|| pair.public_key());
            }
        }
        Ok(auth)
    }
}

/// Where NATS is, and who we are there.
#[derive(Clone)]
pub(crate) struct Place {
    /// Addresses without secrets.
    pub(crate) servers: Vec<String>,
    login: Login,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.servers.join(", "))
    }
}

impl Place {
    /// Reads addresses: one, or several of one cluster with commas between them.
    pub(crate) fn read(url: &str, login: &Login) -> Result<Self, BusError> {
        let mut place = Self { servers: Vec::new(), login: login.clone() };
        for one in url.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let (scheme, rest) = one.split_once("://").unwrap_or(("nats", one));
            if !matches!(scheme, "nats" | "tls") {
                return Err(BusError::Refused(format!(
                    "`{scheme}://` is no address of NATS: `nats://` or `tls://`"
                )));
            }
            let (secret, host) = match rest.rsplit_once('@') {
                Some((secret, host)) => (Some(secret), host),
                None => (None, rest),
            };
            let server = format!("{scheme}://{host}");
            if host.is_empty() || server.parse::<async_nats::ServerAddr>().is_err() {
                return Err(BusError::Refused(format!("`{server}` is no address of NATS")));
            }
            if let (Some(secret), Login::Anonymous) = (secret, &place.login) {
                let read = |text: &str| unescape(text).unwrap_or_else(|| text.to_owned());
                place.login = match secret.split_once(':') {
                    Some((user, password)) => {
                        Login::Password { user: read(user), password: read(password) }
                    }
                    None => Login::Token(read(secret)),
                };
            }
            place.servers.push(server);
        }
        if place.servers.is_empty() {
            return Err(BusError::Refused("there is no address of NATS".to_owned()));
        }
        Ok(place)
    }

    /// What shows who we are, read where it lies in a file. An error says which file, and nothing of it.
    pub(crate) fn proof(&self) -> Result<Proof, String> {
        match &self.login {
            Login::Anonymous => Ok(Proof::Nothing),
            Login::Password { user, password } => {
                Ok(Proof::Password(user.clone(), password.clone()))
            }
            Login::Token(token) => Ok(Proof::Token(token.clone())),
            Login::Nkey(seed) => Ok(Proof::Key(seed.trim().to_owned(), None)),
            Login::Credentials(text) => {
                credentials(text).ok_or_else(|| "the credentials for NATS are not such".to_owned())
            }
            Login::CredentialsFile(path) => {
                let path = path.as_path();
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("the credentials `{}`: {error}", path.display()))?;
                credentials(&text)
                    .ok_or_else(|| format!("`{}` holds no credentials for NATS", path.display()))
            }
        }
    }
}

/// What credentials say: a token, and the seed of its key, each between lines of dashes.
fn credentials(text: &str) -> Option<Proof> {
    let mut parts = text.split("-----BEGIN ").skip(1).filter_map(|it| {
        let mut lines = it.lines().skip(1).map(str::trim).filter(|line| !line.is_empty());
        lines.next().filter(|line| !line.starts_with('-')).map(str::to_owned)
    });
    let (jwt, seed) = (parts.next()?, parts.next()?);
    Some(Proof::Key(seed, Some(jwt)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_addresses_are_taken_out() {
        let place =
            Place::read("nats://me:p%40ss%zz@a:1, tls://b.example", &Login::Anonymous).unwrap();
        assert_eq!(place.servers, ["nats://a:1", "tls://b.example"]);
        assert_eq!(
            place.login,
            Login::Password { user: "me".into(), password: "p%40ss%zz".into() }
        );
        assert_eq!(format!("{place:?}"), "nats://a:1, tls://b.example");
        let place = Place::read("nats://s%3acret@a", &Login::Anonymous).unwrap();
        assert_eq!(place.login, Login::Token("s:cret".into()));
        assert_eq!(format!("{:?}", place.login), "Token(****)");
        assert_eq!(place.servers, ["nats://a"]);
        for bad in ["", "http://a", "nats://", "nats://user:secret@"] {
            let error = Place::read(bad, &Login::Anonymous).unwrap_err().to_string();
            assert!(error.contains("NATS") && !error.contains("secret"), "{bad}: {error}");
        }
    }

    #[test]
    fn credentials_are_read_as_nsc_writes_them() {
        let pair = nkeys::KeyPair::new_user();
        let seed = pair.seed().unwrap();
        let text = format!(
            "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n\n****** IMPORTANT ******\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let place = Place { servers: Vec::new(), login: Login::Credentials(text) };
        let auth = place.proof().unwrap().answer(b"nonce").unwrap();
        assert_eq!((auth.jwt.as_deref(), &auth.nkey), (Some("a.b.c"), &None));
        pair.verify(b"nonce", &auth.signature.unwrap()).unwrap();
        let auth = Proof::Key(seed, None).answer(b"x").unwrap();
        assert_eq!((auth.jwt, auth.nkey), (None, Some(pair.public_key())));
        let bad = Place { servers: Vec::new(), login: Login::Credentials("secret".into()) };
        assert!(!bad.proof().err().unwrap().contains("secret"));
        assert!(Proof::Key("SUsecret".into(), None).answer(b"x").is_err());
    }
}
