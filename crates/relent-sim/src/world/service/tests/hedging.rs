//! Clients who hedge and do nothing else.

use super::*;

/// Where clients hedge and do nothing else, one event an attempt is all that there is, whatever is lost, late, or refused.
#[test]
fn who_only_hedges_does_what_would_be_done_if_everything_were_kept() {
    let control = Control::default();
    let seed = crate::engine::draws::test_seed();
    let mut luck = Stream::new(seed);
    let policies = policies();
    let (mut alone, mut hedged, mut compared) = (0.0, 0.0, 0);
    let worlds = worlds().into_iter().filter(|service| service.layers == 1).cycle();
    for (round, service) in worlds.take(70).enumerate() {
        let mut one_of = |numbers: &[u32]| numbers[luck.below(numbers.len() as u64) as usize];
        let timeout = [service.timeout, Some(SEC), Some(60 * MS)][one_of(&[0, 1, 2]) as usize];
        let network = Network::round_trip(MS * one_of(&[0, 3, 10, 31]));
        let mut service = Service { timeout, network, ..service };
        service.server.retry_after =
            [RetryAfter::Silent, RetryAfter::Fixed(SEC), RetryAfter::Exact][one_of(&[0, 1, 2]) as usize];
        service.server.failure = f64::from(one_of(&[0, 0, 3])) / 10.0;
        service.leaving = f64::from(one_of(&[0, 0, 1])) / 10.0;
        if round % 5 == 0 {
            service.troubles.push(Trouble::new(2 * SEC, 5 * SEC, TroubleKind::Losing(0.4)));
            // Who waits for ever for what is lost waits until the end of time, which is absurd.
            service.timeout = service.timeout.or(Some(2 * SEC));
        }
        let mut protection = || {
            let hedge = Hedge::after(MS * one_of(&[1, 5, 10, 30, 31, 400])).at_most(one_of(&[1, 1, 2, 3]));
            Protection { hedge: Some(hedge.settings()), ..Protection::default() }
        };
        let (first, second) = (protection(), protection());
        let mut policy = || policies[one_of(&[0, 1, 2, 3, 4]) as usize].clone();
        let mut contender = policy().protected(first);
        if one_of(&[0, 0, 1]) == 1 {
            let other = [Protection::default(), second][one_of(&[0, 1]) as usize];
            let share =
                |name, share, policy, protection| Population { protection, ..Population::share(name, share, policy) };
            let policies = (contender.policy, policies[one_of(&[0, 1, 2, 3, 4]) as usize].policy);
            contender.populations = vec![share("one", 0.7, policies.0, first), share("other", 0.3, policies.1, other)];
        }
        let what = format!("{service:?} {contender:?}");
        let draws = Draws::new(seed, None);
        let task = Task { service: &service, contender: &contender, draws, limit: u64::MAX, control: &control };
        let cast = Cast::new(&task);
        assert!(hedged::only_hedge(&task, &cast.0), "{what}");
        let short = guarded::run_as(&task, Calendar::new(), cast, Kept::Hedgers);
        same(&short, &guarded::run_as(&task, Calendar::new(), Cast::new(&task), Kept::All), &what);
        contender.protection = Protection::default();
        contender.populations.clear();
        let task = Task { service: &service, contender: &contender, draws, limit: u64::MAX, control: &control };
        let attempts = |run: &Run| run.figures.get(crate::scenario::Figure::AttemptsPerClient).unwrap_or(0.0);
        alone += attempts(&predict::run(&task, Calendar::new()));
        hedged += attempts(&short);
        compared += 1;
    }
    assert!(hedged > 1.2 * alone && compared == 70, "{hedged} attempts in {compared} runs, {alone} without hedges");
}
