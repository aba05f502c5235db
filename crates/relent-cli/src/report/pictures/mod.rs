//! The plots of a report as files: those of its policies, and those of the scenario as a whole.

mod policies;
mod whole;

use super::{Picture, Report, data, findings, words};
use crate::plot::{Chart, panels};

/// What each change does that helps.
pub(super) fn remedies(report: &Report) -> Option<Picture> {
    policies::remedies(report)
}

pub(super) fn pictures(report: &Report) -> Vec<Picture> {
    let all: [fn(&Report) -> Option<Picture>; 14] = [
        policies::load,
        policies::remedies,
        policies::connected,
        policies::waits,
        policies::cost,
        policies::attempts,
        policies::arrivals,
        whole::heat_drain,
        whole::heat_wasted,
        whole::hysteresis,
        whole::recovery,
        |report| whole::clients(report, "clients-cost", 0),
        |report| whole::clients(report, "clients-time", 1),
        whole::layers,
    ];
    all.into_iter().filter_map(|draw| draw(report)).collect()
}

/// Charts as one picture, if there are any.
fn picture(name: &'static str, report: &Report, charts: &[Chart]) -> Option<Picture> {
    let drawn = charts.iter().any(|chart| chart.series.iter().any(|series| !series.points.is_empty()));
    drawn.then(|| Picture { name, svg: panels::draw(report.title(), charts) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use relent_sim::{
        Figure, Figures, Heat, Hysteresis, HysteresisPoint, Matrix, Recovery, RecoveryPoint, Scenario, Service, Sizes,
        World, simulate,
    };

    #[test]
    fn pictures_of_the_whole_scenario_are_drawn_where_it_has_them() {
        let scenario =
            Scenario::new("x", World::Service(Service::herd(20, 5.0))).policy("a", relent::Policy::default());
        let mut outcome = simulate(&scenario).unwrap();
        let names = |outcome: &relent_sim::Outcome| {
            let report = Report { scenario: &scenario, outcome, command: "" };
            report.pictures().into_iter().map(|picture| picture.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&outcome), ["load", "connected", "waits", "attempts", "arrivals"]);
        let cells = vec![vec![Some(1.0), Some(8.0)], vec![None, Some(2.0)]];
        outcome.extras.heat = Some(Heat {
            policy: "a".into(),
            base_s: vec![0.1, 1.0],
            cap_s: vec![1.0, 10.0],
            drain_over_ideal: cells.clone(),
            wasted_per_client: cells,
        });
        let point = |rho: f64, rising: bool| HysteresisPoint { rho, rising, goodput: rho, load: rho };
        let points = vec![point(0.1, true), point(0.9, true), point(0.9, false), point(0.1, false)];
        outcome.extras.hysteresis = vec![Hysteresis { policy: "a".into(), points }];
        outcome.extras.layers = Some(Matrix {
            failure: 1.0,
            depths: vec![1, 2],
            attempts: vec![4],
            amplification: vec![vec![4.0], vec![16.0]],
        });
        let at = |rho, recovery_s| RecoveryPoint { rho, recovery_s, expected_s: None };
        let points = vec![at(0.1, Some(3.0)), at(0.2, Some(30.0)), at(0.25, None)];
        let curve = Recovery { policy: "a".into(), outage_s: 10.0, patience_s: 180.0, threshold: Some(0.25), points };
        outcome.extras.recovery = vec![curve];
        let figures = |calls| Figures::NONE.with(Figure::Calls, calls).with(Figure::TimeMs, 2.0 * calls);
        outcome.extras.sizes = Some(Sizes {
            clients: vec![1000, 2000],
            figures: vec![Figure::Calls, Figure::TimeMs],
            runs: 1,
            policies: vec![("a".into(), vec![figures(50.0), figures(90.0)])],
            expected: vec![Some(51.0), None],
        });
        let more = ["heat-drain", "heat-wasted", "hysteresis", "recovery", "clients-cost", "clients-time", "layers"];
        assert_eq!(names(&outcome)[5..], more);
        let report = Report { scenario: &scenario, outcome: &outcome, command: "" };
        let drawn = |name: &str| report.pictures().into_iter().find(|picture| picture.name == name).unwrap().svg;
        assert!(drawn("heat-drain").contains(">8.00<") && drawn("layers").contains(">16.0<"));
        let recovery = drawn("recovery");
        assert!(recovery.contains(">1/4<") && recovery.contains("outage of 10s"), "{recovery}");
        assert!(drawn("clients-cost").contains(">by theory<") && !drawn("clients-time").contains(">by theory<"));
        assert!(drawn("clients-cost").contains(">2,000<"));
        let hysteresis = drawn("hysteresis");
        assert!(hysteresis.contains("a, going up") && hysteresis.contains("a, coming back"), "{hysteresis}");
        for picture in report.pictures() {
            assert!(!picture.svg.contains("NaN") && !picture.svg.contains("inf"), "{}", picture.svg);
        }
    }
}
