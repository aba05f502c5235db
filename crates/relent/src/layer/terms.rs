//! What a layer was told besides its retrier.

use super::tally::Tally;
use crate::{Policy, wire::Rules};
use http::{HeaderMap, Method};
use std::{any::Any, error::Error, fmt, sync::Arc};

/// What a layer was told about requests and answers: the options of [`RetryLayer`](super::RetryLayer). Cheap to clone.
///
/// ```
/// use http::StatusCode;
/// use relent::{Verdict, layer::{Repeat, Terms}};
///
/// /// A request of the program's own, to a service that answers with a status.
/// #[derive(Clone)]
/// struct Ask;
///
/// impl Repeat<StatusCode> for Ask {
///     fn again(&self) -> Option<Ask> {
///         Some(Ask)
///     }
///
///     fn verdict(answer: &StatusCode, terms: &Terms) -> Option<Verdict> {
///         terms.rules().verdict(*answer, &http::HeaderMap::new(), std::time::Duration::ZERO)
///     }
/// }
///
/// let terms = Terms::default();
/// assert_eq!(Ask::verdict(&StatusCode::SERVICE_UNAVAILABLE, &terms), Some(Verdict::Transient));
/// assert_eq!(terms.body_limit(), 1 << 20);
/// ```
#[derive(Clone, Default)]
pub struct Terms(Option<Arc<Options>>);

#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) rules: Rules,
    pub(crate) body_limit: u64,
    pub(crate) repeats_unsafe: bool,
    pub(crate) has_keys: bool,
    pub(crate) records: bool,
    pub(crate) may_hedge: bool,
    /// The name under which calls are seen in logs and figures.
    pub(crate) observed: Option<&'static str>,
    pub(crate) follows_redirects: bool,
    pub(crate) retries_given_up: bool,
    pub(crate) tally: Option<Arc<Tally>>,
    pub(crate) routes: Vec<Route>,
    pub(crate) sources: Vec<Source>,
}

/// Looks at an error as its type's own, if it is of that type.
pub(crate) type Source = for<'a> fn(&'a dyn Any) -> Option<&'a (dyn Error + 'static)>;

#[derive(Clone)]
pub(crate) enum Route {
    Writes(Policy),
    Path(String, Policy),
    Rule(Arc<Rule>),
}

/// Chooses a policy, or leaves it to the next rule.
type Rule = dyn Fn(&Head<'_>) -> Option<Policy> + Send + Sync;

/// The head of an HTTP request, as rules that choose a policy look at it.
///
/// ```
/// use relent::{Policy, layer::{Head, RetryLayer}};
///
/// fn policy_of(head: &Head<'_>) -> Option<Policy> {
///     (head.method == "GET" && head.path == "/health" && head.headers.is_empty()).then_some(Policy::immediate())
/// }
///
/// let layer: RetryLayer = Policy::default().layer().choose(policy_of);
/// # drop(layer);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Head<'a> {
    /// The method.
    pub method: &'a Method,
    /// The path, without the query.
    pub path: &'a str,
    /// The headers.
    pub headers: &'a HeaderMap,
}

impl<'a> Head<'a> {
    /// Of these: for requests of the program's own that are asked about by [`Terms::policy_for`].
    ///
    /// ```
    /// use http::{HeaderMap, Method};
    /// use relent::layer::Head;
    ///
    /// let headers = HeaderMap::new();
    /// let head = Head::new(&Method::GET, "/pay", &headers);
    /// assert_eq!((head.method.as_str(), head.path), ("GET", "/pay"));
    /// ```
    pub const fn new(method: &'a Method, path: &'a str, headers: &'a HeaderMap) -> Head<'a> {
        Head { method, path, headers }
    }
}

/// Bodies up to this many bytes are sent again.
const BODY_LIMIT: u64 = 1 << 20;

static NONE: Options = Options {
    rules: Rules::NONE,
    body_limit: BODY_LIMIT,
    repeats_unsafe: false,
    has_keys: false,
    records: false,
    may_hedge: true,
    observed: None,
    follows_redirects: true,
    retries_given_up: false,
    tally: None,
    routes: Vec::new(),
    sources: Vec::new(),
};

impl Terms {
    #[inline]
    pub(crate) fn get(&self) -> &Options {
        match &self.0 {
            Some(options) => options,
            None => &NONE,
        }
    }

    pub(crate) fn change(&mut self) -> &mut Options {
        Arc::make_mut(self.0.get_or_insert_with(|| Arc::new(NONE.clone())))
    }

    /// What statuses mean.
    pub fn rules(&self) -> &Rules {
        &self.get().rules
    }

    /// How many bytes of a request are kept at most.
    pub fn body_limit(&self) -> u64 {
        self.get().body_limit
    }

    /// The policy that the rules choose for a request, if they choose one; the first that does counts. The rules are those of
    /// [`writes`](super::RetryLayer::writes), [`path`](super::RetryLayer::path) and [`choose`](super::RetryLayer::choose).
    ///
    /// ```
    /// use http::{HeaderMap, Method};
    /// use relent::{Policy, layer::{Head, Repeat, Terms}};
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// /// A request of the program's own, for which the rules count that HTTP's have.
    /// #[derive(Clone)]
    /// struct Ask(&'static str);
    ///
    /// impl<R> Repeat<R> for Ask {
    ///     fn again(&self) -> Option<Ask> {
    ///         Some(self.clone())
    ///     }
    ///
    ///     fn policy(&self, terms: &Terms) -> Option<Policy> {
    ///         terms.policy_for(&Head::new(&Method::GET, self.0, &HeaderMap::new()))
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let policy = Policy::immediate();
    /// let layer = policy.max_attempts(3).layer().path("/pay", policy.max_attempts(1));
    /// let down = layer.layer(service_fn(async |_: Ask| Err::<(), _>("down")));
    /// assert_eq!(down.clone().oneshot(Ask("/rates")).await.unwrap_err().attempts, 3);
    /// assert_eq!(down.oneshot(Ask("/pay/7")).await.unwrap_err().attempts, 1);
    /// # });
    /// ```
    pub fn policy_for(&self, head: &Head<'_>) -> Option<Policy> {
        self.get().routes.iter().find_map(|route| match route {
            Route::Writes(policy) => (!head.method.is_safe()).then_some(*policy),
            Route::Path(path, policy) => is_under(head.path, path).then_some(*policy),
            Route::Rule(rule) => rule(head),
        })
    }

    #[inline]
    pub(crate) fn has_routes(&self) -> bool {
        self.0.as_ref().is_some_and(|options| !options.routes.is_empty())
    }
}

/// Whether a path is `folder` or something in it: `/pay` has `/pay` and `/pay/7`, but not `/payments`.
fn is_under(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.get();
        f.debug_struct("Terms")
            .field("body_limit", &options.body_limit)
            .field("repeats_unsafe", &options.repeats_unsafe)
            .field("has_keys", &options.has_keys)
            .field("records", &options.records)
            .field("has_histogram", &options.tally.is_some())
            .field("routes", &options.routes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_what_is_in_it_and_nothing_beside_it() {
        for (path, folder, is_in) in [
            ("/pay", "/pay", true),
            ("/pay/7", "/pay", true),
            ("/pay/7", "/pay/", true),
            ("/payments", "/pay", false),
            ("/", "/pay", false),
            ("/anything", "/", true),
            ("", "/pay", false),
        ] {
            assert_eq!(is_under(path, folder), is_in, "{path} in {folder}");
        }
    }
}
