//! TLS, for clients that come from outside.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring::default_provider,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
};

/// What a door needs to speak TLS. All copies change together.
#[derive(Clone)]
pub struct Tls(Arc<ArcSwap<TlsAcceptor>>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a chain of certificates and their key, both as PEM. Says what is wrong with them.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Self, String> {
        Ok(Self(Arc::new(ArcSwap::from_pointee(acceptor(certificates, key)?))))
    }

    /// Shows other certificates to whoever connects from now on. Those that are wrong are not taken.
    pub fn renew(&self, certificates: &[u8], key: &[u8]) -> Result<(), String> {
        self.0.store(Arc::new(acceptor(certificates, key)?));
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::clone(&self.0.load())
    }
}

fn acceptor(certificates: &[u8], key: &[u8]) -> Result<TlsAcceptor, String> {
    let chain = CertificateDer::pem_slice_iter(certificates).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| format!("the certificate cannot be read: {error}"))?;
    if chain.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key);
    let key = key.map_err(|error| format!("the key cannot be read: {error}"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|it| it.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| error.to_string())?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
