//! Whose certificates are believed, by rustls: what relent's stores and its program decide alike.
//!
//! A certificate that is itself among those that are believed is believed as itself, if its time is now and it is a server's. Others are
//! signed by those alone that may sign, and are valid now: a server's certificate that somebody trusts does not sign for
//! all other servers, and neither does an authority whose time is over.
//!
//! ```
//! use relent_tls::{Verifier, provider, system};
//! use std::sync::Arc;
//!
//! let verifier = Verifier::of(system().unwrap_or_default());
//! let config = rustls::ClientConfig::builder_with_provider(provider())
//!     .with_safe_default_protocol_versions()?
//!     .dangerous()
//!     .with_custom_certificate_verifier(Arc::new(verifier))
//!     .with_no_client_auth();
//! # Ok::<(), rustls::Error>(())
//! ```

mod authorities;
mod fields;
mod files;
mod flaw;
mod identity;
mod signers;
mod verifier;
mod version1;

pub use crate::{
    authorities::{Nobody, system},
    files::certificates,
    flaw::Flaw,
    identity::identity,
    verifier::{Verifier, is_readable, provider},
};
