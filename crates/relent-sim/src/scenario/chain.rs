//! Services between the clients and the server, each with a policy, a timeout and a deadline of its own.

use super::{Contender, Problem, Service, TroubleKind};
use relent::Policy;
use std::time::Duration;

/// A layer of a chain: it takes calls from the one above (the first from nobody: it is the client itself), and makes
/// attempts at the one below, the last at the server.
///
/// A layer that has given up an attempt does not reach into the layers below: what they do for it goes on, unless it had told
/// them how long it waits.
///
/// ```
/// use relent::Policy;
/// use relent_sim::{Contender, Figure, Layer, Scenario, Service, World, simulate};
/// use std::time::Duration;
///
/// let at_once = Policy::immediate().max_attempts(3);
/// let mut service = Service::herd(100, 1000.0);
/// service.server.failure = 1.0;
/// let chain = Contender::new("chain", at_once).through(Layer::new("client")).through(Layer::new("gateway").under(at_once));
/// let outcome = simulate(&Scenario::new("multiplied", World::Service(service)).contender(chain)).unwrap();
/// assert_eq!(outcome.records[0].get(Figure::AttemptsPerClient), Some(9.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// The name.
    pub name: String,
    /// Its policy, if not that of the contender.
    pub policy: Option<Policy>,
    /// How long it waits for the answer to one attempt; also see the policy's attempt timeout.
    pub timeout: Option<Duration>,
    /// How long a whole call of it takes at most, attempts under way included; also see the policy's timeout.
    pub deadline: Option<Duration>,
    /// Whether it tells the layer below how long it waits, which then does nothing later than that.
    pub passes_deadline: bool,
    /// Whether it says "overloaded, do not retry" to the layer above when it gives up.
    pub say_overloaded: bool,
    /// How long a message to the layer below and its answer travel; from the last layer to the server it is the network.
    pub rtt: Duration,
}

impl Layer {
    /// The most of a chain.
    pub(super) const MOST: usize = 8;

    /// A layer with the policy of the contender, that waits as long as it takes and passes nothing on.
    pub fn new(name: impl Into<String>) -> Layer {
        Layer {
            name: name.into(),
            policy: None,
            timeout: None,
            deadline: None,
            passes_deadline: false,
            say_overloaded: false,
            rtt: Duration::ZERO,
        }
    }

    /// The same layer under a policy of its own.
    #[must_use]
    pub const fn under(mut self, policy: Policy) -> Layer {
        self.policy = Some(policy);
        self
    }

    /// How long it waits for an attempt, if not for ever.
    pub(crate) fn patience(&self, policy: &Policy) -> Option<Duration> {
        [self.timeout, policy.settings().attempt_timeout].into_iter().flatten().min()
    }

    /// How long its calls take at most.
    pub(crate) fn limit(&self, policy: &Policy) -> Option<Duration> {
        [self.deadline, policy.settings().timeout].into_iter().flatten().min()
    }
}

impl Contender {
    /// The same contender with one more layer between its clients and the server. The first is the client itself.
    #[must_use]
    pub fn through(mut self, layer: Layer) -> Contender {
        self.layers.push(layer);
        self
    }
}

impl Service {
    /// Chains that make no sense here.
    pub(crate) fn check_chain(&self, contender: &Contender) -> Result<(), Problem> {
        let layers = &contender.layers;
        let Some(last) = layers.last() else { return Ok(()) };
        let fail = |problem: String, hint: &str| Err(Problem::new("layer", problem, hint));
        if layers.len() > Layer::MOST {
            return fail(format!("there are more than {} layers", Layer::MOST), "fewer say as much");
        }
        if let Some(twice) = (1..layers.len()).find(|i| layers[..*i].iter().any(|layer| layer.name == layers[*i].name))
        {
            return fail(format!("two layers are called {:?}", layers[twice].name), "give each a name of its own");
        }
        if let Some(layer) = layers.iter().find(|layer| [layer.timeout, layer.deadline].contains(&Some(Duration::ZERO)))
        {
            let problem = format!("the timeout or deadline of layer {:?} is zero", layer.name);
            return fail(problem, "leave it out for none");
        }
        let alone = self.layers <= 1 && contender.populations.is_empty() && self.newcomers.is_none();
        if !alone {
            return fail(
                "layers of their own are simulated without [layers], populations and newcomers".into(),
                "leave them out",
            );
        }
        if contender.protection.has_upstream() || crate::world::service::needs_dispatch(self) {
            return fail(
                "layers of their own are simulated without upstreams, and with a queue that is first come, first served".into(),
                "leave out upstream, order and drop_expired; admission and pacer know layers",
            );
        }
        let policy = last.policy.unwrap_or(contender.policy);
        let own = self.timeout.filter(|_| layers.len() == 1);
        let waits_for_ever = last.patience(&policy).or(last.limit(&policy)).or(own).is_none();
        if waits_for_ever && self.troubles.iter().any(|trouble| matches!(trouble.kind, TroubleKind::Losing(_))) {
            return fail(
                format!("requests are lost, and layer {:?} waits for an answer for ever", last.name),
                "timeout = \"1s\"",
            );
        }
        Ok(())
    }
}
