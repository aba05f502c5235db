//! What the machines that protect the far side refuse, and what they cost: a table of its own, where there are any.

use super::{View, table};
use relent_sim::{Figure, Outcome};

/// Figures of the whole run, in order; reasons for which nobody is refused are left out.
const COLUMNS: [Figure; 9] = [
    Figure::Amplification,
    Figure::WastedWork,
    Figure::RefusedBudget,
    Figure::RefusedOpen,
    Figure::PutOff,
    Figure::RefusedShed,
    Figure::RefusedOverloaded,
    Figure::RefusedTurn,
    Figure::Fairness,
];

/// The table; nothing where there is no machine.
pub(super) fn draw(outcome: &Outcome, view: View) -> String {
    // Where a machine is, all refusals are counted, those of other machines as none.
    if !table::shown(outcome).any(|record| record.get(Figure::RefusedTurn).is_some()) {
        return String::new();
    }
    let any = |figure: Figure| table::shown(outcome).filter_map(move |record| record.get(figure));
    let wanted = |figure: &Figure| match figure {
        Figure::Amplification | Figure::WastedWork | Figure::Fairness => any(*figure).next().is_some(),
        refused => any(*refused).any(|refused| refused > 0.0),
    };
    let columns: Vec<Figure> = COLUMNS.into_iter().filter(wanted).collect();
    let mut header = vec!["over the whole run".to_owned()];
    header.extend(columns.iter().map(|figure| figure.title().to_owned()));
    let mut rows = vec![header];
    rows.extend(outcome.ideal.map(|ideal| table::ideal_row(&ideal, &columns, outcome)));
    rows.extend(table::shown(outcome).map(|record| table::figures(record, &columns)));
    format!("\n{}", table::readable(rows, view))
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent::{BreakerSettings, PacerSettings, Policy};
    use relent_sim::{Contender, Protection, Scenario, Service, World, simulate};
    use std::time::Duration;

    const WIDE: View = View { columns: None, unicode: true };

    fn herd() -> Scenario {
        let mut service = Service::herd(1000, 100.0);
        service.server.queue = Some(100);
        Scenario::new("herd", World::Service(service))
    }

    fn drawn(scenario: &Scenario) -> String {
        draw(&simulate(scenario).unwrap(), WIDE)
    }

    #[test]
    fn reasons_and_fairness_stand_beside_the_ideal() {
        let policy =
            Policy::constant(Duration::from_secs(1)).unlimited_attempts().max_pushback(Duration::from_secs(60));
        let pacer = PacerSettings { capacity: 100.0, horizon: Duration::from_secs(60), ..PacerSettings::default() };
        let scenario = herd().contender(Contender::new("paced", policy).paced(pacer));
        assert_eq!(
            drawn(&scenario),
            "\nover the whole run  amplification  wasted work  told: turn  max/median wait\n\
             ideal                       1.000          0 %           0            1.998\n\
             paced                       1.900          0 %       0.900            1.998\n"
        );
        assert_eq!(drawn(&herd().policy("alone", policy)), "", "no machine, no table");
    }

    #[test]
    fn who_waits_for_a_breaker_is_told_apart_from_who_is_refused() {
        let policy = Policy::constant(Duration::from_secs(1)).max_attempts(20);
        let breaker = Some(BreakerSettings { consecutive: Some(1), ..BreakerSettings::default() });
        let refused = Protection { breaker, ..Protection::default() };
        let waits = Protection { wait_while_open: true, ..refused };
        let drawn = drawn(
            &herd()
                .contender(Contender::new("fails", policy).protected(refused))
                .contender(Contender::new("waits", policy).protected(waits)),
        );
        let rows: Vec<Vec<&str>> =
            drawn.lines().map(|line| line.split("  ").filter(|cell| !cell.is_empty()).collect()).collect();
        assert_eq!(rows[1][3].trim(), "refused: open", "{drawn}");
        // All but those for whom there was room, and those who got it.
        assert_eq!((rows[3][3].trim(), rows[4][3].trim()), ("0.900", "0"), "{drawn}");
        assert_eq!((rows[1][4].trim(), rows[3][4].trim()), ("waits: open", "0"), "{drawn}");
        // Each of the nine tenths who find no room waits once at least.
        assert!(rows[4][4].trim().parse::<f64>().unwrap() >= 0.9, "{drawn}");
    }
}
