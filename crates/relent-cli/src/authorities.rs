//! The certificate authorities that this system trusts, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`, as OpenSSL reads them:
//! whatever these name, nothing is waited for, or read without end.

use crate::{
    escape::escape,
    regular,
    talk::{Fault, plain},
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The most bytes of a file.
const LONGEST: u64 = 16 << 20;

/// The most bytes of all files of folders.
const LONGEST_IN_ALL: usize = 64 << 20;

/// All of them. One that cannot be read is left out, as every program does.
///
/// # Errors
///
/// There is none.
pub(crate) fn system() -> Result<Vec<CertificateDer<'static>>, Fault> {
    let named = |name| env::var_os(name).filter(|value| !value.is_empty());
    let (found, problem) = match (named("SSL_CERT_FILE"), named("SSL_CERT_DIR")) {
        (None, None) => (rustls_native_certs::load_native_certs().certs, None),
        (file, folders) => of_the_environment(file.map(PathBuf::from), folders),
    };
    if found.is_empty() {
        let why = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        return Err(Fault::new(format!("this system trusts no certificate authority{why}"))
            .hint("install ca-certificates, or name a file with --cacert or SSL_CERT_FILE"));
    }
    Ok(found)
}

/// Those of a file and of folders, and what is wrong with the file.
fn of_the_environment(
    file: Option<PathBuf>,
    folders: Option<OsString>,
) -> (Vec<CertificateDer<'static>>, Option<String>) {
    let (mut found, mut problem) = (Vec::new(), None);
    if let Some(file) = file {
        match certificates(&file, LONGEST) {
            Ok((certificates, _)) => found = certificates,
            Err(error) => {
                problem = Some(format!("SSL_CERT_FILE={}: {}", escape(&file.to_string_lossy()), plain(&error)));
            }
        }
    }
    let mut left = LONGEST_IN_ALL;
    let folders: Vec<PathBuf> = folders.iter().flat_map(|folders| env::split_paths(folders)).collect();
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    for file in files {
        let most = LONGEST.min(left as u64);
        if let Ok((certificates, length)) = certificates(&file.path(), most) {
            found.extend(certificates);
            left -= length;
        }
    }
    found.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
    found.dedup();
    (found, problem)
}

/// The certificates of a regular file, and its length.
fn certificates(file: &Path, most: u64) -> io::Result<(Vec<CertificateDer<'static>>, usize)> {
    let mut text = Vec::new();
    regular::read(file)?.take(most.saturating_add(1)).read_to_end(&mut text)?;
    if text.len() as u64 > most {
        return Err(io::Error::other("it is too long for a file of certificates"));
    }
    Ok((CertificateDer::pem_slice_iter(&text).filter_map(Result::ok).collect(), text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Nothing of it waits, and what is there is still found.
    #[test]
    fn a_pipe_and_an_endless_file_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let folders = || Some(folder.path().as_os_str().to_owned());
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/dev/zero", at("endless")).unwrap();
        fs::File::create(at("long")).unwrap().set_len(LONGEST + 1).unwrap();
        for (name, why) in
            [("pipe", "it is"), ("endless", "it is"), ("long", "it is too long"), ("none", "No such file")]
        {
            let (found, problem) = of_the_environment(Some(at(name)), None);
            let problem = problem.unwrap();
            assert!(found.is_empty() && problem.contains(why), "{name}: {problem}");
            assert!(problem.starts_with("SSL_CERT_FILE="), "{problem}");
        }
        assert_eq!(of_the_environment(None, folders()).0.len(), 0);
        fs::write(at("own.pem"), own.cert.pem()).unwrap();
        symlink("own.pem", at("0123abcd.0")).unwrap();
        for file in [None, Some(at("own.pem")), Some(at("pipe"))] {
            assert_eq!(of_the_environment(file, folders()).0, [own.cert.der().clone()]);
        }
    }
}
