//! Pictures of a scenario as a whole: the map over base and cap, hysteresis, the time to heal by load, layers x
//! attempts, more and fewer clients.
//!
//! Each is a set of further simulations. Where nobody says whether a picture is wanted, it is drawn if the work that it
//! takes is small, counted in attempts rather than in time: the same scenario has the same pictures everywhere.

mod heat;
mod hysteresis;
mod recovery;
mod sizes;

use crate::{
    engine::{control::Control, draws::Draws, parallel, task::Task},
    outcome::{Matrix, Outcome, run::Run},
    scenario::{Contender, Layers, Picture, Scenario, Service, World},
    simulate::{check_memory, plan::Plan},
    world::service::{self},
};
use relent::Policy;

/// What a picture is drawn with.
#[derive(Clone, Copy)]
struct Studio<'a> {
    scenario: &'a Scenario,
    threads: usize,
    control: &'a Control,
}

/// Adds pictures to the outcome of a scenario, on so many threads: those that it asks for, and, of those about which it
/// says nothing, the ones that take a second or less. Returns the pictures that it asks for and cannot have.
pub fn draw_pictures(scenario: &Scenario, outcome: &mut Outcome, threads: usize, control: &Control) -> Vec<Picture> {
    let studio = Studio { scenario, threads, control };
    let missing = Picture::ALL.into_iter().filter(|picture| !studio.draw(*picture, outcome)).collect();
    outcome.interrupted |= control.is_stopped();
    missing
}

impl Studio<'_> {
    /// False if the picture was asked for and there is none.
    fn draw(self, picture: Picture, outcome: &mut Outcome) -> bool {
        let wish = self.scenario.pictures.get(picture);
        let fits = self.scenario.fits(picture).is_ok();
        if wish == Some(false) || !fits || (wish.is_none() && !self.is_cheap(picture)) || self.control.is_stopped() {
            return wish != Some(true);
        }
        let mut extras = std::mem::take(&mut outcome.extras);
        match picture {
            Picture::Heat => extras.heat = heat::draw(self),
            Picture::Hysteresis => extras.hysteresis = hysteresis::draw(self),
            Picture::Recovery => extras.recovery = recovery::draw(self),
            Picture::Layers => extras.layers = extras.layers.or_else(|| Some(layers(&self.scenario.world))),
            Picture::Clients => extras.sizes = sizes::draw(self),
        }
        let drawn = match picture {
            Picture::Heat => extras.heat.is_some(),
            Picture::Hysteresis => !extras.hysteresis.is_empty(),
            Picture::Recovery => !extras.recovery.is_empty(),
            Picture::Layers => extras.layers.is_some(),
            Picture::Clients => extras.sizes.is_some(),
        };
        outcome.extras = extras;
        drawn || wish.is_none()
    }

    fn is_cheap(self, picture: Picture) -> bool {
        match picture {
            Picture::Heat => heat::is_cheap(self),
            Picture::Hysteresis => hysteresis::is_cheap(self),
            Picture::Recovery => recovery::is_cheap(self),
            Picture::Layers => match &self.scenario.world {
                World::Layers(_) => true,
                World::Service(service) => service.layers > 1,
                _ => false,
            },
            Picture::Clients => sizes::is_cheap(self),
        }
    }

    /// The server and its clients, if that is the world.
    fn service(&self) -> Option<&Service> {
        match &self.scenario.world {
            World::Service(service) => Some(service),
            _ => None,
        }
    }

    /// Does something for each contender, in runs of the exact engine that need no more memory than those of a service; nothing if that is
    /// more than there is, or turns out to be.
    fn each<T: Send>(self, service: Service, work: impl Fn(&Contender) -> Option<T> + Sync) -> Vec<T> {
        let Studio { scenario, threads, control } = self;
        let contenders = &scenario.contenders;
        let largest = Scenario { world: World::Service(service), seeds: 1, ..scenario.clone() };
        let plans: Vec<Plan> = contenders.iter().map(|_| Plan::Exact).collect();
        let Ok(needed) = check_memory(&largest, &plans, threads) else { return Vec::new() };
        let each = || parallel::each(contenders.len(), threads, control, |nth| work(&contenders[nth]));
        let done = control.watched(needed, each).filter(|_| !control.is_stopped());
        done.into_iter().flatten().flatten().flatten().collect()
    }

    /// One run of the exact engine.
    fn run(self, service: &Service, contender: &Contender) -> Run {
        let Studio { scenario, control, .. } = self;
        let draws = Draws::new(scenario.first_seed, scenario.forced);
        service::run(&Task { service, contender, draws, limit: crate::time::nanos(scenario.limit), control })
    }
}

/// The most attempts that a picture by the exact engine may take without being asked for.
const CHEAP_ATTEMPTS: f64 = 2e7;

/// The most attempts a call that a policy makes, as far as it says; enough to be dear if it does not.
fn most_attempts(contender: &Contender) -> f64 {
    let most = |policy: &Policy| policy.settings().max_attempts.map_or(20.0, f64::from);
    if !contender.layers.is_empty() {
        return contender.layers.iter().map(|layer| most(&layer.policy.unwrap_or(contender.policy))).product();
    }
    let populations = contender.populations.iter().map(|population| most(&population.policy));
    populations.reduce(f64::max).unwrap_or_else(|| most(&contender.policy))
}

/// The capacity of a server whose calls come in a stream.
fn open_capacity(service: &Service) -> Option<f64> {
    service.capacity().filter(|_| service.is_open())
}

fn layers(world: &World) -> Matrix {
    let (failure, say_overloaded) = match world {
        World::Layers(layers) => (layers.failure, layers.say_overloaded),
        World::Service(service) => (1.0, service.say_overloaded),
        _ => (1.0, false),
    };
    Layers { calls: 1, depth: 1, failure, say_overloaded }.matrix()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{scenario::Pictures, simulate::simulate};

    fn drawn(wishes: Pictures) -> (Outcome, Vec<Picture>) {
        let mut service = Service::herd(1000, 50.0);
        service.server.queue = Some(50);
        // A curve that has no base that could grow.
        let policy = Policy::constant(std::time::Duration::from_secs(1)).unlimited_attempts();
        let mut scenario = Scenario::new("herd", World::Service(service)).policy("constant", policy);
        scenario.pictures = wishes;
        let mut outcome = simulate(&scenario).unwrap();
        let missing = draw_pictures(&scenario, &mut outcome, 1, &Control::default());
        (outcome, missing)
    }

    #[test]
    fn what_was_asked_for_and_cannot_be_had_is_said() {
        let (outcome, missing) = drawn(Pictures::NONE.with(Picture::Heat, true).with(Picture::Layers, true));
        assert_eq!(missing, [Picture::Heat]);
        assert!(outcome.extras.layers.is_some() && outcome.extras.sizes.is_none());
    }

    #[test]
    fn who_is_interrupted_draws_nothing_more() {
        let scenario = crate::scenario::presets::aws(10).seeds(1);
        let mut outcome = simulate(&scenario).unwrap();
        let control = Control::default();
        control.stop();
        draw_pictures(&scenario, &mut outcome, 1, &control);
        assert!(outcome.interrupted && outcome.extras.sizes.is_none());
    }

    #[test]
    fn what_nobody_speaks_of_is_drawn_where_it_is_cheap() {
        let (outcome, missing) = drawn(Pictures::default());
        assert_eq!(missing, []);
        assert!(outcome.extras.sizes.is_some() && outcome.extras.layers.is_none());
        let (outcome, _) = drawn(Pictures::default().with(Picture::Clients, false));
        assert_eq!(outcome.extras, Default::default());
    }
}
