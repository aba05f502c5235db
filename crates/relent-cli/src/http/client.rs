//! The client: a connection for each attempt, over whatever leads there; its own retries and redirects off.

use super::{
    args::Args,
    beside::Beside,
    exchange::{Asked, Place, USER_AGENT, Unanswered, exchange},
    failure::{self, Broken, Led, Way},
    greeting::Turn,
    idle::Pulse,
    linger::Stream,
    proxy::{self, Proxies},
    redirect::Hop,
    request::Request,
    resolve::Resolver,
    socket::Socket,
    tls,
};
use crate::talk::Fault;
use http::{HeaderMap, Request as Message};
use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use reqwest::Response;
use rustls::{ClientConfig, pki_types::CertificateDer};
use std::{
    cell::RefCell,
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use url::{Origin, Url};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The client, and whether its connection was made.
pub(super) struct Client {
    http: reqwest::Client,
    /// The same without the caller's certificate, which is for one origin; `None` if there is none.
    bare: Option<reqwest::Client>,
    home: Origin,
    /// Where the request under way goes, and what led there: before one that a redirect leads to, one was sent and answered.
    hop: RefCell<Option<(Url, Led)>>,
    /// Where the connection under way is read.
    beside: RefCell<Option<Beside>>,
    /// Whether the request that is under way waits to be sent.
    turn: RefCell<Turn>,
    /// Which proxy leads where.
    proxies: Proxies,
    resolver: Resolver,
    /// Servers are spoken to in HTTP/2 without being asked.
    http2_alone: bool,
    /// Tells whether a request can have left.
    watch: Watch,
}

/// How clients are made, all alike.
pub(super) struct Recipe {
    tls: ClientConfig,
    /// The same without the caller's certificate, if it has one.
    bare: Option<ClientConfig>,
    /// The caller's certificates, and those that are believed.
    who: [Arc<[CertificateDer<'static>]>; 2],
    home: Origin,
    http1: bool,
    http2: bool,
    unix_socket: Option<PathBuf>,
    connect_timeout: Duration,
    proxies: Proxies,
    resolver: Resolver,
}

/// How the flags describe it.
pub(super) fn recipe(args: &Args, request: &Request) -> Result<Recipe, Fault> {
    let url = &request.url;
    // HTTP/2 has no place for a host of the user's own beside that of the URL.
    let http1 = args.http1 || request.headers.contains_key(http::header::HOST);
    let connect_timeout = relent::duration::parse_duration(&args.connect_timeout)
        .map_err(|bad| Fault::new(format!("--connect-timeout: {bad}")).hint(bad.hint()))?;
    let (proxies, resolver) = (Proxies::resolve(args)?, Resolver::new(&args.resolve)?);
    proxies.to(url)?;
    let (http2, unix_socket) = (args.http2, args.unix_socket.clone());
    let identity = args.cert.as_deref().map(|file| tls::identity(file, args.key.as_deref())).transpose()?;
    let own = identity.as_ref().map_or_else(|| Arc::new([]) as Arc<[_]>, |(chain, _)| chain.as_slice().into());
    let believed = tls::believed(args, url, &proxies)?;
    let tls = tls::config(args, identity, http1, believed.as_ref())?;
    let bare = args.cert.as_ref().map(|_| tls::config(args, None, http1, believed.as_ref())).transpose()?;
    let who = [own, believed.map_or_else(|| Arc::new([]) as Arc<[_]>, |verifier| verifier.certificates())];
    if bare.is_some() && proxies.to(url)?.is_some_and(|proxy| proxy.scheme() == "https") {
        return Err(Fault::new(
            "--cert: the certificate would be shown to the proxy, which is spoken to over TLS, too",
        )
        .hint("--noproxy HOST goes there without it"));
    }
    let home = url.origin();
    Ok(Recipe { tls, bare, who, home, http1, http2, unix_socket, connect_timeout, proxies, resolver })
}

impl Recipe {
    /// The caller's certificates, and those that are believed, if there are any.
    pub(super) fn who(&self) -> &[Arc<[CertificateDer<'static>]>; 2] {
        &self.who
    }

    /// Which proxies lead where, as one text.
    pub(super) fn proxies(&self) -> String {
        self.proxies.whole()
    }

    /// A client, which one request at a time is sent by.
    pub(super) fn client(&self) -> Result<Client, Fault> {
        let socket = self.unix_socket.as_deref().map(Socket::new).map(Arc::new);
        let (watch, resolver) = (Watch { socket, ..Watch::default() }, self.resolver.apart());
        let http = self.http(&self.tls, &watch, &resolver)?;
        let bare = self.bare.as_ref().map(|tls| self.http(tls, &watch, &resolver)).transpose()?;
        let (proxies, home) = (self.proxies.clone(), self.home.clone());
        let http2_alone = self.http2 && !self.http1;
        Ok(Client {
            http,
            bare,
            home,
            hop: RefCell::default(),
            beside: RefCell::default(),
            turn: RefCell::default(),
            proxies,
            resolver,
            http2_alone,
            watch,
        })
    }

    fn http(&self, tls: &ClientConfig, watch: &Watch, resolver: &Resolver) -> Result<reqwest::Client, Fault> {
        let chosen = self.proxies.clone();
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls.clone())
            .retry(reqwest::retry::never())
            // Without kept connections there are none that could have died unnoticed, which the client would replace.
            .pool_max_idle_per_host(0)
            // Redirects are followed by `attempt`, which knows what may be sent on.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .proxy(reqwest::Proxy::custom(move |url| chosen.to(url).ok().flatten().cloned()))
            .dns_resolver(Arc::new(resolver.clone()))
            .connect_timeout(self.connect_timeout)
            .connector_layer(watch.clone())
            .user_agent(USER_AGENT);
        let builder = match &watch.socket {
            Some(socket) => builder.unix_socket(socket.way()),
            None => builder,
        };
        let builder = match (self.http1, self.http2) {
            (true, _) => builder.http1_only(),
            (_, true) => builder.http2_prior_knowledge(),
            _ => builder,
        };
        builder.build().map_err(|error| Fault::new(format!("cannot set up the client: {}", failure::innermost(&error))))
    }
}

impl Client {
    /// Sends a request with these headers, and hears its answer. The caller's certificate is shown to nobody else than whom the URL names.
    pub(super) fn ask(
        &self,
        hop: &Hop,
        headers: HeaderMap,
        body: Option<reqwest::Body>,
        pulse: &Pulse,
    ) -> impl Future<Output = Result<Response, Unanswered>> + Send + use<> {
        let client = self.bare.as_ref().filter(|_| hop.url.origin() != self.home).unwrap_or(&self.http);
        let mut request = Message::new(body.unwrap_or_default());
        *request.method_mut() = hop.method.clone();
        *request.headers_mut() = headers;
        let proxy = self.proxies.to(&hop.url).ok().flatten();
        exchange(Asked {
            client: client.clone(),
            url: hop.url.clone(),
            request,
            to_proxy: proxy.and_then(proxy::authorization),
            http2_alone: self.http2_alone,
            pulse: pulse.clone(),
            turn: self.turn.borrow().clone(),
        })
    }

    /// A thread for the connection of the request that is next; that of the last one ends, unless its answer is still read.
    pub(super) fn beside(&self) -> Result<Beside, String> {
        self.hang_up();
        let beside = Beside::start()?;
        self.beside.replace(Some(beside.clone()));
        Ok(beside)
    }

    /// The request under way is given up: its connection is closed, whatever the server goes on to say.
    pub(super) fn hang_up(&self) {
        self.beside.take();
    }

    /// The way to `url`, as far as it has come.
    pub(super) fn way<'a>(&'a self, url: &'a Url, led: Led) -> Way<'a> {
        let (connected, http2_alone) = (self.watch.is_connected(), self.http2_alone);
        let is_unasked = self.turn.borrow().give_up();
        Way { url, led, connected, is_unasked, http2_alone, proxies: &self.proxies }
    }

    /// What has become of the request that is under way when its time is over; `first` is where the call goes.
    pub(super) fn late(&self, limit: Duration, first: &Url) -> Broken {
        self.hang_up();
        match &*self.hop.borrow() {
            Some((url, led)) => failure::late(limit, &self.way(url, *led)),
            None => failure::late(limit, &self.way(first, Led::default())),
        }
    }

    /// An attempt begins.
    pub(super) fn begins(&self) {
        self.watch.reset();
        self.hop.take();
    }

    /// A request to `url` is next, and this led there.
    pub(super) fn connects_to(&self, url: &Url, led: Led) -> Result<(), Fault> {
        self.hop.replace(Some((url.clone(), led)));
        let proxy = self.proxies.to(url)?;
        self.watch.reset();
        self.turn.take();
        self.resolver.connects_to(url, proxy);
        Ok(())
    }
}

/// Sees when a connection has been made, TLS included: before that nothing of a request can have left. It is taken for the request then. Of a
/// socket of the file system it is seen before whose it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    is_connected: Arc<AtomicBool>,
    socket: Option<Arc<Socket>>,
}

impl Watch {
    fn reset(&self) {
        self.is_connected.store(false, Ordering::Relaxed);
    }

    /// Whether the attempt got a connection.
    fn is_connected(&self) -> bool {
        self.is_connected.load(Ordering::Relaxed)
    }
}

impl<S> tower_layer::Layer<S> for Watch {
    type Service = Watched<S>;

    fn layer(&self, inner: S) -> Watched<S> {
        Watched { inner, watch: self.clone() }
    }
}

/// Nobody accepts where TCP has connected to itself, as it does where nobody listens and the system gives out the very port.
fn of_another(connection: &impl Connection) -> io::Result<()> {
    let mut seen = http::Extensions::new();
    connection.connected().get_extras(&mut seen);
    match seen.get::<HttpInfo>() {
        Some(info) if info.local_addr() == info.remote_addr() => Err(io::ErrorKind::ConnectionRefused.into()),
        _ => Ok(()),
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
    S::Response: Stream + Connection + 'static,
    S::Error: Into<BoxError> + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, target: T) -> Self::Future {
        if let Some(Err(error)) = self.watch.socket.as_deref().map(Socket::look) {
            return Box::pin(async move { Err(error.into()) });
        }
        let connecting = self.inner.call(target);
        let (watch, place) = (self.watch.clone(), Place::here());
        Box::pin(async move {
            let connection = connecting.await.map_err(Into::into)?;
            of_another(&connection)?;
            watch.is_connected.store(true, Ordering::Relaxed);
            Err(place.take(connection))
        })
    }
}
