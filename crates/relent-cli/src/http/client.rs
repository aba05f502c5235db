//! The client: TLS, protocol versions, proxies from the environment; its own retries off.

use super::args::Args;
use crate::talk::Fault;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};
use std::{
    error::Error,
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};
use url::Url;

/// The client, and whether its connection was made.
pub(super) struct Client {
    /// The client.
    pub(super) http: reqwest::Client,
    /// Tells whether a request can have left.
    pub(super) watch: Watch,
}

/// The client that the flags describe.
pub(super) fn build(args: &Args, url: &Url) -> Result<Client, Fault> {
    let connect_timeout = relent::duration::parse_duration(&args.connect_timeout)
        .map_err(|bad| Fault::new(format!("--connect-timeout: {bad}")).hint(bad.hint()))?;
    let watch = Watch::default();
    let redirects = match args.location {
        true => reqwest::redirect::Policy::limited(10),
        false => reqwest::redirect::Policy::none(),
    };
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(args, url)?)
        .retry(reqwest::retry::never())
        // Without kept connections there are none that could have died unnoticed, which the client would replace.
        .pool_max_idle_per_host(0)
        .redirect(redirects)
        .referer(false)
        .dns_resolver(Arc::new(Resolver))
        .connect_timeout(connect_timeout)
        .connector_layer(watch.clone())
        .user_agent(concat!("relent/", env!("CARGO_PKG_VERSION")));
    let builder = match (args.http1, args.http2) {
        (true, _) => builder.http1_only(),
        (_, true) => builder.http2_prior_knowledge(),
        _ => builder,
    };
    let http = builder.build().map_err(|error| {
        Fault::new(format!("cannot set up the client: {}", super::failure::innermost(&error)))
            .hint("look at the proxy variables of the environment: http_proxy, https_proxy, all_proxy")
    })?;
    Ok(Client { http, watch })
}

fn tls(args: &Args, url: &Url) -> Result<ClientConfig, Fault> {
    let roots = match &args.cacert {
        Some(file) => roots_in(file)?,
        None if args.location || url.scheme() == "https" || proxied_over_tls() => system_roots()?,
        // Reading the system's takes longer than a request on loopback.
        None => RootCertStore::empty(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let protocols: &[&[u8]] = match (args.http1, args.http2) {
        (true, _) => &[b"http/1.1"],
        (_, true) => &[b"h2"],
        _ => &[b"h2", b"http/1.1"],
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

fn proxied_over_tls() -> bool {
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|proxy| proxy.as_encoded_bytes().starts_with(b"https:")))
}

fn system_roots() -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Fault::new("this system trusts no certificate authority")
            .hint("install ca-certificates, or name a file with --cacert or SSL_CERT_FILE"));
    }
    Ok(roots)
}

fn roots_in(file: &Path) -> Result<RootCertStore, Fault> {
    let name = file.display();
    let hint = "--cacert wants certificates in PEM: -----BEGIN CERTIFICATE-----";
    let text = std::fs::read(file)
        .map_err(|error| Fault::new(format!("cannot read {name}: {}", super::failure::plain(&error))).hint(hint))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
        added.ok_or_else(|| Fault::new(format!("{name} has a certificate that cannot be read")).hint(hint))?;
    }
    if roots.is_empty() {
        return Err(Fault::new(format!("{name} has no certificate in it")).hint(hint));
    }
    Ok(roots)
}

/// The system's names, with an error that says it was the name.
struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(|_| Unresolved)?;
            Ok(Box::new(addresses.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}

/// The host's name has no address now.
#[derive(Debug)]
pub(super) struct Unresolved;

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name has no address")
    }
}

impl Error for Unresolved {}

/// Sees when a connection has been made, TLS included: before that nothing of a request can have left.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch(Arc<AtomicBool>);

impl Watch {
    /// A new attempt begins.
    pub(super) fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether the attempt got a connection.
    pub(super) fn is_connected(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S> tower_layer::Layer<S> for Watch {
    type Service = Watched<S>;

    fn layer(&self, inner: S) -> Watched<S> {
        Watched { inner, watch: self.clone() }
    }
}

/// A connector under watch.
#[derive(Clone, Debug)]
pub(super) struct Watched<S> {
    inner: S,
    watch: Watch,
}

impl<S, T> tower_service::Service<T> for Watched<S>
where
    S: tower_service::Service<T>,
    S::Future: Send + 'static,
    S::Response: 'static,
    S::Error: 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, target: T) -> Self::Future {
        let connecting = self.inner.call(target);
        let watch = self.watch.clone();
        Box::pin(async move {
            let connected = connecting.await;
            if connected.is_ok() {
                watch.0.store(true, Ordering::Relaxed);
            }
            connected
        })
    }
}
