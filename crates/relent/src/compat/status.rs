//! Which answers other systems retry: their own lists, which agree neither with each other nor with relent's table.

/// What botocore makes of a failure.
///
/// ```
/// use relent::compat::status::{Aws, aws};
///
/// let throttled = Aws { retryable: true, throttling: true };
/// assert_eq!(aws(400, Some("SlowDown"), false), throttled);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aws {
    /// Retried.
    pub retryable: bool,
    /// Counted as throttling, which waits longer in retry 2.1.
    pub throttling: bool,
}

const AWS_THROTTLING: [&str; 14] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
];
const AWS_TRANSIENT: [&str; 3] = ["PriorRequestNotComplete", "RequestTimeout", "RequestTimeoutException"];

/// botocore's standard mode, by the code of the modelled error, if there is one, and the status. Retry 2.1 takes a 429
/// without a modelled error for throttling; 2.0 does not retry it.
///
/// ```
/// # use relent::compat::status::aws;
/// assert!(aws(503, None, false).retryable);
/// assert!(!aws(429, None, false).retryable, "retry 2.0");
/// assert!(aws(429, None, true).throttling, "retry 2.1");
/// ```
pub fn aws(status: u16, code: Option<&str>, unmodelled_429: bool) -> Aws {
    let is_one_of = |codes: &[&str]| code.is_some_and(|code| codes.contains(&code));
    let throttling = is_one_of(&AWS_THROTTLING) || (unmodelled_429 && code.is_none() && status == 429);
    let transient = is_one_of(&AWS_TRANSIENT) || matches!(status, 500 | 502 | 503 | 504);
    Aws { retryable: throttling || transient, throttling }
}

/// Whether botocore retries an exception of its HTTP client, by name: those of connections and of the client.
///
/// ```
/// # use relent::compat::status::aws_exception;
/// assert!(aws_exception("ReadTimeoutError") && !aws_exception("NoCredentialsError"));
/// ```
pub fn aws_exception(name: &str) -> bool {
    matches!(
        name,
        "ConnectionError"
            | "ConnectTimeoutError"
            | "ConnectionClosedError"
            | "EndpointConnectionError"
            | "HTTPClientError"
            | "ProxyConnectionError"
            | "ReadTimeoutError"
            | "ResponseStreamingError"
            | "SSLError"
    )
}

/// urllib3's `Retry.is_retry`: idempotent methods only, and then the statuses of the user's `forcelist`, or 413, 429
/// and 503 if they come with a `Retry-After`.
///
/// ```
/// # use relent::compat::status::urllib3;
/// assert!(urllib3("GET", 503, true, &[]) && !urllib3("GET", 503, false, &[]));
/// assert!(!urllib3("POST", 503, true, &[503]), "not idempotent");
/// ```
pub fn urllib3(method: &str, status: u16, has_retry_after: bool, forcelist: &[u16]) -> bool {
    let idempotent = ["DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"];
    idempotent.contains(&method.to_ascii_uppercase().as_str())
        && (forcelist.contains(&status) || (has_retry_after && matches!(status, 413 | 429 | 503)))
}

/// go-retryablehttp's policy for an answer: whether it retries, and whether it reports an error. The method is never
/// looked at, so a POST is retried too.
///
/// ```
/// # use relent::compat::status::retryablehttp;
/// assert_eq!((retryablehttp(503), retryablehttp(501)), ((true, true), (false, false)));
/// ```
pub fn retryablehttp(status: u16) -> (bool, bool) {
    match status {
        429 => (true, false),
        0 => (true, true),
        501 => (false, false),
        500.. => (true, true),
        _ => (false, false),
    }
}

/// go-retryablehttp's policy for an error: all but a few, which it knows by their text.
///
/// ```
/// # use relent::compat::status::retryablehttp_error;
/// assert!(retryablehttp_error("connection refused"));
/// assert!(!retryablehttp_error("stopped after 10 redirects"));
/// ```
pub fn retryablehttp_error(text: &str) -> bool {
    let redirects = text.strip_suffix(" redirects").and_then(|text| text.rsplit_once("stopped after "));
    let too_many = redirects.is_some_and(|(_, count)| !count.is_empty() && count.bytes().all(|b| b.is_ascii_digit()));
    let hopeless =
        ["unsupported protocol scheme", "invalid header", "certificate is not trusted", "failed to verify certificate"];
    !too_many && !hopeless.iter().any(|hopeless| text.contains(hopeless))
}

/// stripe-python's `_should_retry` for an answer: `Stripe-Should-Retry` decides, else 409 and all from 500 on.
///
/// ```
/// # use relent::compat::status::stripe;
/// assert!(stripe(409, None) && !stripe(409, Some("false")));
/// ```
pub fn stripe(status: u16, should_retry: Option<&str>) -> bool {
    match should_retry {
        Some("true") => true,
        Some("false") => false,
        _ => status == 409 || status >= 500,
    }
}

/// openai-python's `_should_retry`, after the headers of [`header::openai`](super::header::openai):
/// `x-should-retry` decides, else 408, 409, 429 and all from 500 on.
///
/// ```
/// # use relent::compat::status::openai;
/// assert!(openai(429, None) && !openai(400, None));
/// ```
pub fn openai(status: u16, should_retry: Option<&str>) -> bool {
    match should_retry {
        Some("true") => true,
        Some("false") => false,
        _ => matches!(status, 408 | 409 | 429 | 500..),
    }
}

/// The delay of got 14.6 in milliseconds, where 0 means "do not retry".
///
/// `attempt` counts failures from 1; `limit` is 2 by default. `own` is its own delay, taken where no `Retry-After` is
/// given; one that is longer than `longest` ends the call, and a 413 without one is not retried.
///
/// ```
/// # use relent::compat::status::got;
/// assert_eq!(got("GET", 503, 1, 2, None, f64::INFINITY, 1000.0), 1000.0);
/// assert_eq!(got("POST", 503, 1, 2, None, f64::INFINITY, 1000.0), 0.0, "not retried");
/// ```
pub fn got(
    method: &str,
    status: u16,
    attempt: u32,
    limit: u32,
    retry_after: Option<f64>,
    longest: f64,
    own: f64,
) -> f64 {
    let methods = ["GET", "PUT", "HEAD", "DELETE", "OPTIONS", "TRACE"];
    let statuses = [408, 413, 429, 500, 502, 503, 504, 521, 522, 524];
    if attempt > limit || !methods.contains(&method) || !statuses.contains(&status) {
        return 0.0;
    }
    // Zero is no answer to JavaScript.
    match retry_after.filter(|told| *told != 0.0) {
        Some(told) if told > longest => 0.0,
        Some(told) => told,
        None if status == 413 => 0.0,
        None => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_disagree_about_the_same_answer() {
        assert!(!aws(408, None, true).retryable);
        assert!(openai(408, None));
        assert!(retryablehttp(505).0 && !aws(505, None, true).retryable);
        assert!(!stripe(429, None) && openai(429, None) && retryablehttp(429).0);
        assert!(urllib3("get", 503, true, &[]) && !urllib3("GET", 503, false, &[]) && !urllib3("POST", 503, true, &[]));
    }

    #[test]
    fn a_429_without_a_modelled_error_is_throttling_since_2_1() {
        assert_eq!(aws(429, None, true), Aws { retryable: true, throttling: true });
        assert_eq!(aws(429, None, false), Aws { retryable: false, throttling: false });
    }

    #[test]
    fn go_retryablehttp_knows_errors_by_their_text() {
        assert!(!retryablehttp_error("Get \"x\": stopped after 10 redirects"));
        assert!(!retryablehttp_error("unsupported protocol scheme \"gopher\""));
        assert!(retryablehttp_error("connection refused"));
        assert!(retryablehttp_error("stopped after many redirects"));
    }

    #[test]
    fn got_says_zero_for_no() {
        let delay = |method, status, attempt, told| got(method, status, attempt, 2, told, f64::INFINITY, 1000.0);
        assert_eq!(delay("GET", 503, 1, None), 1000.0);
        assert_eq!(delay("GET", 503, 3, None), 0.0);
        assert_eq!(delay("POST", 503, 1, Some(5.0)), 0.0);
        assert_eq!(delay("GET", 413, 1, None), 0.0);
        assert_eq!(delay("GET", 413, 1, Some(5.0)), 5.0);
        assert_eq!(got("GET", 503, 1, 2, Some(5.0), 4.0, 1000.0), 0.0);
        assert_eq!(delay("GET", 503, 1, Some(0.0)), 1000.0);
        assert_eq!(delay("GET", 413, 1, Some(0.0)), 0.0);
    }
}
