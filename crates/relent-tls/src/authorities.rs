//! The certificate authorities that this system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`, as OpenSSL reads them.

use crate::files::{LONGEST, text};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::{
    env,
    error::Error,
    ffi::OsString,
    fmt, fs, io,
    path::{Path, PathBuf},
};

/// The most bytes of all files of folders.
const LONGEST_IN_ALL: usize = 64 << 20;

/// The certificates that this system trusts, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name: of each file at most 16 MiB. One that
/// cannot be read is left out, as every program does; so is a file that is no regular one.
///
/// # Errors
///
/// There is none.
///
/// ```
/// match relent_tls::system() {
///     Ok(certificates) => assert!(!certificates.is_empty()),
///     Err(nobody) => println!("{nobody}"),
/// }
/// ```
pub fn system() -> Result<Vec<CertificateDer<'static>>, Nobody> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty());
    let (found, file) = match (named("SSL_CERT_FILE"), named("SSL_CERT_DIR")) {
        (None, None) => (rustls_native_certs::load_native_certs().certs, None),
        (file, folders) => of_the_environment(file.map(PathBuf::from), folders),
    };
    match found.is_empty() {
        true => Err(Nobody { file }),
        false => Ok(found),
    }
}

/// No certificate authority is trusted.
///
/// ```
/// let nobody = relent_tls::Nobody { file: None };
/// assert_eq!(nobody.to_string(), "this system trusts no certificate authority");
/// ```
#[derive(Debug)]
pub struct Nobody {
    /// The file that `SSL_CERT_FILE` names, if it cannot be read, and why.
    pub file: Option<(PathBuf, io::Error)>,
}

impl fmt::Display for Nobody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this system trusts no certificate authority")
    }
}

impl Error for Nobody {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.file.as_ref().map(|(_, why)| why as _)
    }
}

/// Those of a file and of folders, and what is wrong with the file.
fn of_the_environment(
    file: Option<PathBuf>,
    folders: Option<OsString>,
) -> (Vec<CertificateDer<'static>>, Option<(PathBuf, io::Error)>) {
    let (mut found, mut problem) = (Vec::new(), None);
    if let Some(file) = file {
        match readable(&file, LONGEST) {
            Ok((certificates, _)) => found = certificates,
            Err(error) => problem = Some((file, error)),
        }
    }
    let mut left = LONGEST_IN_ALL;
    let folders: Vec<PathBuf> = folders.iter().flat_map(|folders| env::split_paths(folders)).collect();
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    for file in files {
        if let Ok((certificates, length)) = readable(&file.path(), LONGEST.min(left as u64)) {
            found.extend(certificates);
            left -= length;
        }
    }
    found.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
    found.dedup();
    (found, problem)
}

/// The certificates of a regular file that can be read, and its length.
fn readable(file: &Path, most: u64) -> io::Result<(Vec<CertificateDer<'static>>, usize)> {
    let text = text(file, most)?;
    Ok((CertificateDer::pem_slice_iter(&text).filter_map(Result::ok).collect(), text.len()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::certificates;
    use std::{
        os::unix::fs::symlink,
        process::Command,
        sync::{
            atomic::{AtomicBool, Ordering::Relaxed},
            mpsc::channel,
        },
        thread,
        time::Duration,
    };

    fn mkfifo(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().is_ok_and(|made| made.success()));
    }

    /// Nothing of it waits, and what is there is still found.
    #[test]
    fn what_is_no_file_of_certificates_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folders = || Some(folder.path().as_os_str().to_owned());
        mkfifo(&at("pipe"));
        symlink("/dev/zero", at("endless")).unwrap();
        fs::File::create(at("long")).unwrap().set_len(LONGEST + 1).unwrap();
        for (name, why) in [
            ("pipe", "it is no regular file"),
            ("endless", "it is no regular file"),
            ("long", "it is too long"),
            ("none", "No such file"),
        ] {
            let (found, problem) = of_the_environment(Some(at(name)), None);
            let (file, problem) = problem.unwrap();
            assert!(found.is_empty() && file == at(name), "{name}");
            assert!(problem.to_string().contains(why), "{name}: {problem}");
            assert!(certificates(&at(name)).unwrap_err().to_string().contains(why), "{name}");
        }
        assert_eq!(of_the_environment(None, folders()).0.len(), 0);
        fs::write(at("own.pem"), own.cert.pem()).unwrap();
        symlink("own.pem", at("0123abcd.0")).unwrap();
        for file in [None, Some(at("own.pem")), Some(at("pipe"))] {
            assert_eq!(of_the_environment(file, folders()).0, [own.cert.der().clone()]);
        }
        assert_eq!(certificates(&at("own.pem")).unwrap(), [own.cert.der().clone()]);
        for (text, why) in [
            (String::new(), "there is no certificate in it"),
            (
                own.cert.pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
                "it has a certificate that cannot be read",
            ),
        ] {
            fs::write(at("other.pem"), text).unwrap();
            assert_eq!(certificates(&at("other.pem")).unwrap_err().to_string(), why);
        }
    }

    /// However quick whoever may exchange it is.
    #[test]
    fn a_pipe_that_comes_and_goes_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (file, pipe, aside) = (at("ca.pem"), at("pipe"), at("aside"));
        fs::write(&file, "none").unwrap();
        mkfifo(&pipe);
        let (is_over, (tell, told), path) = (AtomicBool::new(false), channel(), file.clone());
        thread::spawn(move || {
            (0..20_000).for_each(|_| drop(text(&path, LONGEST)));
            tell.send(())
        });
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    for (from, to) in [(&file, &aside), (&pipe, &file), (&file, &pipe), (&aside, &file)] {
                        fs::rename(from, to).unwrap();
                    }
                }
            });
            let ended = told.recv_timeout(Duration::from_secs(20));
            is_over.store(true, Relaxed);
            ended
        });
        assert!(ended.is_ok(), "it waits for who writes to the pipe");
    }
}
