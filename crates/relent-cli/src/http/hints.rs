//! What curl's flags are called here.

/// What to write instead of a flag of curl's that there is not; the flag as it was given.
pub(crate) fn for_curl(flag: &str) -> Option<&'static str> {
    Some(match flag.split('=').next()?.trim_start_matches("--").trim_start_matches('-') {
        "f" | "fail" => "a failing status fails here anyway: leave it out",
        "s" | "silent" => "here it is -q, which still says errors",
        "S" | "show-error" => "errors are always said: leave it out",
        "m" | "max-time" => "here it is --timeout for everything, --attempt-timeout for each attempt",
        "y" | "Y" | "speed-time" | "speed-limit" => "here it is --idle-timeout: the longest without a byte",
        "retry" => "here it is --max-attempts, which counts the first attempt too",
        "retry-delay" => "here it is --base, with --curve constant --jitter none for the same delay each time",
        "retry-max-time" => "here it is --max-elapsed (no attempt starts later), or --timeout (all ends then)",
        "retry-all-errors" => "--retry-on-status 400-499 retries other statuses too",
        "retry-connrefused" => "a refused connection is retried anyway: leave it out",
        "A" | "user-agent" => "here it is -H 'User-Agent: ...'",
        "e" | "referer" => "here it is -H 'Referer: ...'",
        "b" | "cookie" => "here it is -H 'Cookie: name=value', or -H @FILE",
        "c" | "cookie-jar" => "cookies are not kept; -H 'Cookie: ...' sends one",
        "r" | "range" => "here it is -H 'Range: bytes=0-99'",
        "T" | "upload-file" => "here it is PUT URL -d @FILE",
        "data-raw" | "data-ascii" => "here it is -d, where a leading @ names a file",
        "data-urlencode" | "G" | "get" => "write the query into the URL, or the encoded text after -d",
        "form-string" => "here it is -F name=text, where text begins neither with @ nor with <",
        "oauth2-bearer" => "here it is -H 'Authorization: Bearer ...', or -H @FILE",
        "K" | "config" | "n" | "netrc" | "netrc-file" => "-H @FILE takes headers from a file",
        "D" | "dump-header" => "here it is -i, the head before the body",
        "N" | "no-buffer" => "a body is printed when it is complete, so that no part of a failed one is",
        "J" | "remote-header-name" => "the server does not choose where we write: -o FILE does",
        "create-dirs" => "make the folder first (mkdir -p)",
        "output-dir" => "here it is -o FOLDER/FILE",
        "max-filesize" => "here it is --max-size",
        "max-redirs" => "here it is -L, at most 10 redirects",
        "proto" | "proto-redir" => "http and https are all there are: leave it out",
        "socks4" | "socks4a" | "socks5" | "socks5-hostname" => {
            "here it is -x socks5h://host:port (or socks5, socks4, socks4a)"
        }
        "http1.0" | "0" | "http2-prior-knowledge" | "http3" => "here it is --http1.1 or --http2",
        "1" | "tlsv1" | "tlsv1.0" | "tlsv1.1" | "tlsv1.2" | "tlsv1.3" => "TLS 1.2 and 1.3 are spoken: leave it out",
        "cert-type" | "key-type" => "certificates and keys are in PEM: leave it out",
        "capath" => "here it is --cacert FILE, or SSL_CERT_DIR in the environment",
        "connect-to" => "here it is --resolve HOST:PORT:ADDRESS",
        "4" | "ipv4" | "6" | "ipv6" => "--resolve HOST:PORT:ADDRESS says which address",
        "p" | "proxytunnel" => "https goes through a tunnel anyway: leave it out",
        "#" | "progress-bar" => "a long body has a bar anyway: leave it out",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_about_flags_that_there_are_not() {
        let command = <super::super::Args as clap::Args>::augment_args(clap::Command::new("http"));
        for argument in command.get_arguments() {
            let long = argument.get_long().map(str::to_owned);
            let short = argument.get_short().map(String::from);
            for flag in [long, short].into_iter().flatten() {
                assert_eq!(for_curl(&flag), None, "there is --{flag}");
            }
        }
        assert!(for_curl("-f").is_some() && for_curl("--max-time=5").is_some());
    }
}
