//! Who of the clients is of which population, what is theirs, and when they come.

use super::{clients::Clients, clients::Failure, clients::Single, manners::Manners, starts::Starts};
use crate::{
    engine::{control::Control, draws::Draws, task::Task, travel::Ways},
    scenario::{Arrivals, Contender, Part, Population, Protection, Service},
    time::nanos,
    world::bounds::Bounds,
};
use relent::{Decision, Policy, Timestamp};
use std::time::Duration;

/// What clients of one population have in common.
pub(crate) struct Role<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) protection: &'a Protection,
    pub(crate) manners: Manners,
    pub(crate) ways: Ways,
    pub(crate) bounds: Bounds,
    /// When a call ends, counted from its beginning, and how long it waits at most.
    pub(crate) ends: Option<Duration>,
    pub(crate) waits: Duration,
    /// How many clients are in it, and in how many processes.
    pub(crate) clients: u64,
    pub(crate) processes: u64,
}

/// All clients of a run.
pub(crate) struct Cast<'a> {
    roles: Vec<Role<'a>>,
    /// The role of each client; nothing where there is one.
    of: Vec<u8>,
}

impl<'a> Cast<'a> {
    /// When a client makes its first attempt, which its policy may put off.
    #[inline]
    pub(super) fn first_attempt(&self, draws: &Draws, starts: &Starts, client: u32) -> u64 {
        let spread = self.role(client).policy.call(Timestamp::ZERO, draws.call(u64::from(client))).spread();
        starts.of(client).saturating_add(nanos(spread))
    }

    /// Who plays in a task, and when they come on.
    pub(crate) fn new(task: &Task<'a>) -> (Cast<'a>, Starts) {
        let populations = &task.contender.populations;
        if populations.is_empty() {
            let starts = Starts::new(task.service, task.draws, task.control);
            let processes = task.service.processes();
            let role = Role::new(task.service, &task.contender.policy, &task.contender.protection);
            let role = Role { clients: starts.len() as u64, processes, ..role };
            return (Cast { roles: vec![role], of: Vec::new() }, starts);
        }
        let (starts, of) = match populations.iter().any(Population::is_own) {
            true => own(populations, &task.draws, task.control),
            false => {
                let starts = Starts::new(task.service, task.draws, task.control);
                let of = shared(populations, starts.len(), task.control);
                (starts, of)
            }
        };
        let mut clients = vec![0u64; populations.len()];
        of.iter().for_each(|role| clients[usize::from(*role)] += 1);
        let role = |(population, clients): (&'a Population, &u64)| {
            let role = Role::new(&population.service(task.service), &population.policy, &population.protection);
            let processes = population.processes(task.service, *clients);
            Role { clients: *clients, processes, ..role }
        };
        (Cast { roles: populations.iter().zip(&clients).map(role).collect(), of }, starts)
    }

    /// How many clients each population has.
    pub(crate) fn clients(&self) -> Vec<u64> {
        self.roles.iter().map(|role| role.clients).collect()
    }

    /// How many populations are counted by themselves.
    pub(crate) fn populations(&self) -> usize {
        if self.of.is_empty() { 0 } else { self.roles.len() }
    }

    /// Which population a client is of.
    #[inline(always)]
    pub(crate) fn place(&self, client: u32) -> usize {
        self.of.get(client as usize).map_or(0, |role| usize::from(*role))
    }

    /// What is a client's.
    #[inline(always)]
    pub(crate) fn role(&self, client: u32) -> &Role<'a> {
        &self.roles[self.place(client)]
    }

    pub(crate) fn roles(&self) -> &[Role<'a>] {
        &self.roles
    }

    /// The role that is the only one.
    pub(crate) fn only(&self) -> Option<&Role<'a>> {
        match &self.roles[..] {
            [role] if self.of.is_empty() => Some(role),
            _ => None,
        }
    }
}

impl<'a> Role<'a> {
    fn new(service: &Service, policy: &'a Policy, protection: &'a Protection) -> Role<'a> {
        let settings = policy.settings();
        Role {
            policy,
            protection,
            manners: Manners::new(service, policy),
            ways: Ways::new(service.network),
            bounds: Bounds::new(policy, service.layers),
            ends: [settings.max_elapsed, settings.timeout].into_iter().flatten().min(),
            waits: settings.max_pushback.unwrap_or(Duration::MAX),
            clients: 0,
            processes: 1,
        }
    }
}

/// In how many processes the clients of a contender are, about.
pub(crate) fn processes(service: &Service, contender: &Contender) -> u64 {
    if contender.populations.is_empty() {
        return service.processes();
    }
    let all = service.clients();
    let of = |population: &Population| {
        let clients = match &population.part {
            Part::Share(share) => all * share,
            Part::Own(arrivals, _) => arrivals.clients(),
        };
        population.processes(service, clients as u64 + 1)
    };
    contender.populations.iter().map(of).fold(0, u64::saturating_add)
}

impl Population {
    /// In how many processes so many clients are.
    fn processes(&self, service: &Service, clients: u64) -> u64 {
        let usual = match (&self.part, service.processes) {
            (Part::Share(share), Some(all)) => (all as f64 * share).round() as u64,
            (Part::Share(_), None) if service.is_open() => 1,
            (Part::Own(Arrivals::Open { .. }, _), _) => 1,
            _ => clients,
        };
        self.processes.unwrap_or(usual).clamp(1, clients.max(1))
    }
}

/// Who of so many clients is of which population, by their shares: evenly mixed, and the same whatever the seed, so that
/// it is no luck who is first.
fn shared(populations: &[Population], clients: usize, control: &Control) -> Vec<u8> {
    let shares: Vec<f64> = populations
        .iter()
        .map(|population| match population.part {
            Part::Share(share) => share,
            Part::Own(..) => 0.0,
        })
        .collect();
    let mut given = vec![0u64; shares.len()];
    let next = |client: u32| {
        // Who is furthest behind their share comes next.
        let behind = |place: &usize| (f64::from(client) + 1.0) * shares[*place] - given[*place] as f64;
        let place = (0..shares.len()).rev().max_by(|a, b| behind(a).total_cmp(&behind(b))).unwrap_or(0);
        given[place] += 1;
        place as u8
    };
    control.each(clients).map(next).collect()
}

/// How many clients are put in order before somebody is asked whether to go on.
const AT_ONCE: usize = 1 << 22;

/// Who comes when, where populations have arrivals of their own. Clients are numbered in the order in which they come,
/// and who come at once are evenly mixed.
fn own(populations: &[Population], draws: &Draws, control: &Control) -> (Starts, Vec<u8>) {
    let mut all: Vec<(u64, f64, u8)> = Vec::new();
    let mut ends = None;
    for (place, population) in populations.iter().enumerate() {
        let Part::Own(arrivals, at) = &population.part else { continue };
        let draws = if place == 0 { *draws } else { draws.apart(100 + place as u64) };
        if let Arrivals::Open { until, .. } = arrivals {
            ends = ends.max(Some(nanos(*until)));
        }
        let service = Service { arrivals: arrivals.clone(), ..Service::herd(1, 1.0) };
        let starts = Starts::new(&service, draws, control);
        let count = starts.len();
        let rank = |nth: u32| (f64::from(nth) + 0.5) / count as f64;
        let at = nanos(*at);
        let begins = |nth: u32| (starts.of(nth).saturating_add(at), rank(nth), place as u8);
        all.extend(control.each(count).map(begins));
    }
    if let Some(end) = ends {
        all.retain(|(start, ..)| *start < end);
    }
    let in_order = |a: &(u64, f64, u8), b: &(u64, f64, u8)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2));
    // What is in order in its parts takes less to be so as a whole.
    all.chunks_mut(AT_ONCE).take_while(|_| !control.is_over()).for_each(|part| part.sort_by(in_order));
    if !control.is_over() {
        all.sort_by(in_order);
    }
    (Starts::Open(all.iter().map(|(start, ..)| *start).collect()), all.iter().map(|(.., place)| *place).collect())
}

/// Clients of several populations, each of which retries on its own.
pub(crate) struct Mixed<'a> {
    each: Vec<Single<'a>>,
}

impl<'a> Mixed<'a> {
    pub(crate) fn new(contender: &'a Contender, draws: Draws, clients: usize) -> Mixed<'a> {
        let single = |population: &'a Population| Single::new(&population.policy, draws, clients);
        Mixed { each: contender.populations.iter().map(single).collect() }
    }
}

impl Clients for Mixed<'_> {
    #[inline(always)]
    fn fail(&mut self, failure: Failure) -> Decision {
        self.each[failure.place].fail(failure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shares: &[f64]) -> Vec<Population> {
        shares.iter().map(|share| Population::share(share.to_string(), *share, Policy::default())).collect()
    }

    #[test]
    fn shares_are_kept_at_every_point_and_nobody_is_left_over() {
        for shares in [&[0.8, 0.2][..], &[1.0, 0.0], &[0.0, 1.0], &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], &[0.001, 0.999]] {
            let roles = shared(&of(shares), 10_000, &Control::default());
            let mut given = vec![0.0; shares.len()];
            for (client, role) in roles.iter().enumerate() {
                given[usize::from(*role)] += 1.0;
                for (share, given) in shares.iter().zip(&given) {
                    assert!((given - share * (client + 1) as f64).abs() < 2.0, "{shares:?} {client} {given}");
                }
            }
            for (share, given) in shares.iter().zip(&given) {
                assert!((given - share * 10_000.0).abs() < 1.0, "{shares:?}: {given}");
                assert!(*share > 0.0 || *given == 0.0, "{shares:?}: nobody is of an empty share");
            }
        }
    }

    #[test]
    fn those_who_come_at_once_are_mixed_and_numbered_in_the_order_of_time() {
        let herd = |clients, at| {
            let mut population =
                Population::own("herd", Arrivals::Herd { clients, window: Duration::ZERO }, Policy::default());
            population.part = Part::Own(Arrivals::Herd { clients, window: Duration::ZERO }, Duration::from_nanos(at));
            population
        };
        let (starts, roles) = own(&[herd(4, 0), herd(2, 0), herd(1, 7)], &Draws::new(1, None), &Control::default());
        assert_eq!(roles, [0, 1, 0, 0, 1, 0, 2]);
        assert_eq!((0..7).map(|client| starts.of(client)).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 0, 7]);
    }
}
