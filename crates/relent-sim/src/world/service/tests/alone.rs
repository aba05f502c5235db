//! Clients who each have an upstream of their own, played by one.

use super::*;

/// What is kept of a client and its upstream is all by which they differ from the others.
#[test]
fn one_who_plays_all_clients_does_what_each_would_do() {
    let control = Control::default();
    let mut refused = 0;
    for (i, service) in worlds().iter().enumerate().filter(|(_, service)| service.layers == 1) {
        let service = Service { processes: Some(1_000_000), ..service.clone() };
        let policies = policies().into_iter().cycle().skip(i);
        for (contender, protection) in policies.zip(machines().into_iter().cycle()).take(32) {
            let what = format!("world {i}, {}: {protection:?}", contender.name);
            let contender = contender.protected(protection);
            let draws = Draws::new(7, None);
            let task = Task { service: &service, contender: &contender, draws, limit: u64::MAX, control: &control };
            let cast = Cast::new(&task);
            if !players::can_be_played(&task, &cast.0) {
                continue;
            }
            let played = guarded::run_as(&task, Calendar::new(), cast, Kept::Players);
            let each = guarded::run_as(&task, Calendar::new(), Cast::new(&task), Kept::All);
            refused += played.gave_up.get("budget").unwrap_or(&0) + played.gave_up.get("open").unwrap_or(&0);
            same(&played, &each, &what);
        }
    }
    assert!(refused > 10_000, "the machines did something: {refused}");
}
