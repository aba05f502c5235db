//! Which names say that a value lets others in.

/// The parts of names that say that a value is secret.
const SECRET: [&str; 28] = [
    "art-api",
    "honeycomb-team",
    "protection-bypass",
    "hdnea",
    "hdnt",
    "macaroon",
    "token",
    "key",
    "secret",
    "passw",
    "passphrase",
    "session",
    "cookie",
    "authoriz",
    "x-auth",
    "credential",
    "signature",
    "jwt",
    "assertion",
    "api-id",
    "client-cert",
    "csrf",
    "xsrf",
    "sessid",
    "saml",
    "ticket",
    "hmac",
    "verifier",
];

/// The names that are secret as a whole, where a part of a name would say too much.
const SECRET_NAMES: [&str; 13] =
    ["auth", "pass", "pwd", "pw", "sig", "sid", "sas", "code", "pin", "otp", "nonce", "authentication", "bearer"];

/// The words that are secret within a name, too: `X-Db-Pwd`, `user_pass`, `dbPass`.
const SECRET_WORDS: [&str; 23] = [
    "pat",
    "psw",
    "pswd",
    "tkn",
    "tok",
    "creds",
    "mfa",
    "pin",
    "sas",
    "auth",
    "authentication",
    "bearer",
    "pass",
    "passcode",
    "pwd",
    "pw",
    "sig",
    "sid",
    "otp",
    "totp",
    "dpop",
    "psk",
    "wsse",
];

/// What a value begins with that lets others in, whatever its name is.
pub(super) const SCHEMES: [&str; 7] = ["basic", "bearer", "token", "apikey", "negotiate", "ntlm", "ssws"];

/// What sounds like a secret and is none: it lets nobody in, and has to reach the server that a redirect names.
const NO_SECRET: &str = "idempotency-key";

/// Whether what has this name (a header, a parameter, a variable) lets others in.
///
/// ```
/// use relent_cli::redact::is_secret;
///
/// assert!(is_secret("X-Api-Key") && is_secret("access_token") && is_secret("PGPASSWORD"));
/// assert!(is_secret("X-Db-Pwd") && is_secret("otp_code") && is_secret("X-XSRF"));
/// assert!(!is_secret("Accept") && !is_secret("Author"));
/// ```
pub fn is_secret(name: &str) -> bool {
    let given = name.trim();
    let name = given.to_ascii_lowercase().replace('_', "-");
    if name == NO_SECRET {
        return false;
    }
    let is_one =
        |word: &str| SECRET_WORDS.contains(&word) || (word.ends_with("pass") && !["bypass", "compass"].contains(&word));
    SECRET.iter().any(|part| name.contains(part))
        || SECRET_NAMES.contains(&name.as_str())
        || name.split(BETWEEN_WORDS).any(is_one)
        || in_words(given).split(BETWEEN_WORDS).any(is_one)
}

/// Whether a setting of this name is a password: stricter than [`is_secret`], since there are `token_ratio` and `--key`.
pub(super) fn is_password(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    ["passwor", "passwd", "passphrase", "secret", "accesssignature"].iter().any(|part| name.contains(part))
        || ["_token", "api_key", "apikey", "access_key", "accesskey", "accountkey", "sessid", "pass"]
            .iter()
            .any(|end| name.ends_with(end))
        || ["pwd", "pw", "token"].contains(&name.trim_start_matches('_'))
}

/// Whether a word is a token of a service that marks its own.
pub(super) fn is_token(word: &str) -> bool {
    const MARKS: [&str; 21] = [
        "AKIA",
        "ASIA",
        "AIza",
        "dop_v1_",
        "eyJ",
        "ghp_",
        "gho_",
        "ghr_",
        "ghs_",
        "ghu_",
        "github_pat_",
        "glpat-",
        "hvs.",
        "npm_",
        "pypi-",
        "rk_live_",
        "shpat_",
        "shpss_",
        "sk_live_",
        "whsec_",
        "xox",
    ];
    // What a word may begin with as well.
    const SHORT: [&str; 2] = ["hf_", "sk-"];
    // It may stand where a flag does.
    let word = word.trim_start_matches('-');
    let rest = |marks: &[&str]| marks.iter().find_map(|mark| word.strip_prefix(mark)).unwrap_or_default();
    let is_of_two = || word.strip_prefix("SG.").is_some_and(|rest| rest.len() >= 40 && rest.contains('.'));
    let is_long = || rest(&SHORT).len() >= 20 && !word.contains('.') && word.contains(|c: char| c.is_ascii_digit());
    !word.contains('/') && (rest(&MARKS).len() >= 6 || is_long() || is_of_two())
}

/// Whether a header lets others in: its name says so, or its value.
pub(super) fn is_secret_header(name: &str, value: &str) -> bool {
    is_secret(name) || is_credential(name, value)
}

/// Whether a value says itself that it lets others in, as `Bearer abc` does. A server that asks for one uses the same words.
fn is_credential(name: &str, value: &str) -> bool {
    let (scheme, rest) = value.trim().split_once(char::is_whitespace).unwrap_or_default();
    !rest.is_empty()
        && !name.to_ascii_lowercase().ends_with("authenticate")
        && SCHEMES.iter().any(|word| scheme.eq_ignore_ascii_case(word))
}

/// A header that was given in the place of a URL, if its value is secret. A host of such a name loses its port.
pub(super) fn in_its_place(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let is_one = is_name && !value.is_empty() && !value.contains('@');
    (is_one && (is_secret(name) || is_credential(name, value))).then_some((name, value))
}

/// What stands between the words of a name.
const BETWEEN_WORDS: [char; 6] = ['-', '.', '[', ']', ':', '/'];

/// `authCode` as `auth-code`.
fn in_words(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 8);
    let mut was_small = false;
    for c in name.chars() {
        if was_small && c.is_ascii_uppercase() {
            out.push('-');
        }
        was_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(if c == '_' { '-' } else { c.to_ascii_lowercase() });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_known_by_their_marks() {
        for token in [
            "ghu_hunter2",
            "shpat_hunter2",
            "whsec_hunter2",
            "sk-hunter2hunter2hunter2",
            "hf_hunter2hunter2hunter2",
            "--ghp_hunter2",
        ] {
            assert!(is_token(token), "{token}");
        }
        for word in
            ["ghu_", "sk-hunter2", "sk-server12.staging.example.com", "sk-a-word-of-small-letters", "hf_models_2"]
        {
            assert!(!is_token(word), "{word}");
        }
    }
}
