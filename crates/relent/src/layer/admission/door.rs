//! The door of a service: an admission, and what its layer says beyond it.

use crate::{Admission, AdmissionPermit, Priority, core::admission::refusal::Refusal, wire};
use core::{ops::Deref, time::Duration};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use std::sync::Arc;

/// An [`Admission`] that a layer and its requests share: a `static`, an `Arc`, or one given away.
///
/// ```
/// use relent::{Admission, Limit, layer::{AdmissionLayer, admission::SharedAdmission}};
/// use std::sync::Arc;
///
/// static DOOR: Admission = Admission::new();
/// let from_file = Arc::new(Admission::new().limit(Limit::concurrency(10)));
/// let doors: [SharedAdmission; 3] = [(&DOOR).into(), from_file.clone().into(), Admission::new().into()];
/// let layers = doors.map(AdmissionLayer::new);
/// assert!(std::ptr::eq(layers[0].admission(), &DOOR));
/// assert!(std::ptr::eq(layers[1].admission(), &*from_file));
/// ```
#[derive(Clone, Debug)]
pub struct SharedAdmission(Shared);

#[derive(Clone, Debug)]
enum Shared {
    Static(&'static Admission),
    Counted(Arc<Admission>),
}

impl From<Admission> for SharedAdmission {
    fn from(admission: Admission) -> SharedAdmission {
        SharedAdmission(Shared::Counted(Arc::new(admission)))
    }
}

impl From<&'static Admission> for SharedAdmission {
    fn from(admission: &'static Admission) -> SharedAdmission {
        SharedAdmission(Shared::Static(admission))
    }
}

impl From<Arc<Admission>> for SharedAdmission {
    fn from(admission: Arc<Admission>) -> SharedAdmission {
        SharedAdmission(Shared::Counted(admission))
    }
}

impl Deref for SharedAdmission {
    type Target = Admission;

    #[inline]
    fn deref(&self) -> &Admission {
        match &self.0 {
            Shared::Static(admission) => admission,
            Shared::Counted(admission) => admission,
        }
    }
}

/// What a layer says beyond its admission.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) priority: Option<Arc<PriorityRule>>,
    pub(super) status: Option<StatusCode>,
    pub(super) body_at_most: Duration,
    #[cfg(feature = "metrics")]
    pub(super) is_observed: bool,
}

pub(super) type PriorityRule = dyn Fn(&Method, &Uri, &HeaderMap) -> Priority + Send + Sync;

/// What the requests of a service share. One count up and down a request.
#[derive(Clone)]
pub(super) struct Door(Arc<Guarded>);

struct Guarded {
    admission: SharedAdmission,
    rules: Rules,
}

impl Deref for Door {
    type Target = Admission;

    #[inline]
    fn deref(&self) -> &Admission {
        &self.0.admission
    }
}

impl Door {
    pub(super) fn new(admission: SharedAdmission, rules: Rules) -> Door {
        Door(Arc::new(Guarded { admission, rules }))
    }

    pub(super) fn priority<B>(&self, request: &Request<B>) -> Priority {
        match &self.0.rules.priority {
            Some(rule) => rule(request.method(), request.uri(), request.headers()),
            None => Priority::Normal,
        }
    }

    #[cold]
    pub(super) fn refusal(&self, refusal: Refusal, asked: &HeaderMap) -> Response<()> {
        #[cfg(feature = "metrics")]
        if self.0.rules.is_observed {
            crate::observe::refused(refusal.rule);
        }
        let mut response = wire::refusal(refusal.answer, self.settings().scope, asked).unwrap_or_default();
        if let (Some(status), false) = (self.0.rules.status, response.status().is_success()) {
            *response.status_mut() = status;
        }
        response
    }
}

impl AdmissionPermit<Door> {
    /// How long a body keeps the place; `None` if it is free when the head is there.
    pub(super) fn of_body(&self) -> Option<Duration> {
        Some(self.door().0.rules.body_at_most).filter(|longest| !longest.is_zero())
    }
}
