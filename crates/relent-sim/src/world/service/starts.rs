//! When each client's call begins.

use crate::{
    engine::{
        control::Control,
        draws::{Draws, Purpose},
    },
    scenario::{Arrivals, Newcomers, Rate, Service},
};
use relent::rng::scale;

/// When each client's call begins.
pub(crate) enum Starts {
    Herd {
        clients: u64,
        window: u64,
        draws: Draws,
    },
    Open(Vec<u64>),
    /// A herd, and those who come while it comes back.
    Joined {
        clients: u64,
        window: u64,
        draws: Draws,
        newcomers: Vec<u64>,
    },
}

impl Starts {
    pub(crate) fn new(service: &Service, draws: Draws, control: &Control) -> Starts {
        match &service.arrivals {
            Arrivals::Herd { clients, window } => {
                let (clients, window) = (*clients, crate::time::nanos(*window));
                match service.newcomers {
                    None => Starts::Herd { clients, window, draws },
                    Some(Newcomers { rate, until }) => {
                        let newcomers = Rate::constant(rate).times(until, true, &draws.apart(1), control);
                        Starts::Joined { clients, window, draws, newcomers }
                    }
                }
            }
            Arrivals::Open { rate, poisson, until } => Starts::Open(rate.times(*until, *poisson, &draws, control)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Starts::Herd { clients, .. } => *clients as usize,
            Starts::Open(times) => times.len(),
            Starts::Joined { clients, newcomers, .. } => *clients as usize + newcomers.len(),
        }
    }

    #[inline]
    pub(crate) fn of(&self, client: u32) -> u64 {
        match self {
            Starts::Herd { window: 0, .. } => 0,
            Starts::Herd { window, draws, .. } => scale(draws.world(u64::from(client), 0, Purpose::Start), *window),
            Starts::Open(times) => times[client as usize],
            Starts::Joined { clients, newcomers, .. } if u64::from(client) >= *clients => {
                newcomers[client as usize - *clients as usize]
            }
            Starts::Joined { window, draws, .. } => scale(draws.world(u64::from(client), 0, Purpose::Start), *window),
        }
    }

    /// Whether others join the herd.
    #[inline]
    pub(crate) const fn is_joined(&self) -> bool {
        matches!(self, Starts::Joined { .. })
    }

    /// Whether it is one of those others.
    #[inline]
    pub(crate) fn is_newcomer(&self, client: u32) -> bool {
        matches!(self, Starts::Joined { clients, .. } if u64::from(client) >= *clients)
    }
}
