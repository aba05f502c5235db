//! Which pictures of a scenario as a whole are wanted.

use super::{Arrivals, Contender, Population, Scenario, Service, World};

/// A picture of a scenario as a whole. Each costs time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Picture {
    /// Base x cap, by the fluid engine (herds).
    Heat,
    /// The load raised slowly and lowered again (calls that come in a stream).
    Hysteresis,
    /// The time that an outage takes to heal, by load (calls that come in a stream).
    Recovery,
    /// Layers x attempts a layer.
    Layers,
    /// What more or fewer clients would bring.
    Clients,
}

impl Picture {
    /// All of them.
    pub const ALL: [Picture; 5] =
        [Picture::Heat, Picture::Hysteresis, Picture::Recovery, Picture::Layers, Picture::Clients];

    /// The name in flags and files.
    pub const fn name(self) -> &'static str {
        match self {
            Picture::Heat => "heat",
            Picture::Hysteresis => "hysteresis",
            Picture::Recovery => "recovery",
            Picture::Layers => "layers",
            Picture::Clients => "clients",
        }
    }

    /// The picture of this name.
    pub fn parse(name: &str) -> Option<Picture> {
        Picture::ALL.into_iter().find(|picture| picture.name() == name)
    }

    /// Whether a world has this picture at all.
    ///
    /// # Errors
    ///
    /// What it would take.
    pub const fn fits(self, world: &World) -> Result<(), &'static str> {
        let herd = matches!(world, World::Service(Service { arrivals: Arrivals::Herd { .. }, .. }));
        let open = matches!(world, World::Service(Service { arrivals: Arrivals::Open { .. }, .. }));
        match self {
            Picture::Heat if !herd => Err("only a herd that drains has a map of base and cap"),
            Picture::Hysteresis | Picture::Recovery if !open => {
                Err("only calls that come in a stream have a load that can be raised")
            }
            Picture::Layers if !matches!(world, World::Layers(_) | World::Service(_)) => Err("there are no layers"),
            Picture::Clients if open || matches!(world, World::Layers(_)) => {
                Err("only a herd, writers of one row and shared channels have a number of clients")
            }
            _ => Ok(()),
        }
    }
}

impl Scenario {
    /// Whether the scenario has this picture: its [world](Picture::fits) does, and so do its clients, who may not be alike.
    ///
    /// # Errors
    ///
    /// What it would take.
    ///
    /// ```
    /// use relent::Policy;
    /// use relent_sim::{Contender, Layer, Picture, Scenario, Service, World};
    ///
    /// let herd = Scenario::new("herd", World::Service(Service::herd(10, 5.0))).policy("p", Policy::default());
    /// assert!(herd.fits(Picture::Heat).is_ok() && herd.fits(Picture::Hysteresis).is_err());
    /// let chain = Contender::new("chain", Policy::default()).through(Layer::new("client"));
    /// assert!(herd.contender(chain).fits(Picture::Heat).is_err());
    /// ```
    pub fn fits(&self, picture: Picture) -> Result<(), &'static str> {
        picture.fits(&self.world)?;
        let any = |is: fn(&Contender) -> bool| self.contenders.iter().any(is);
        let has_layers = any(|contender| !contender.layers.is_empty());
        let has_populations = any(|contender| !contender.populations.is_empty());
        let come_by_themselves = any(|contender| contender.populations.iter().any(Population::is_own));
        match picture {
            Picture::Heat if has_layers || has_populations => {
                Err("a map of base and cap is of one policy, and there are populations or layers with others")
            }
            Picture::Layers if has_layers => Err("layers with policies of their own have no one number of attempts"),
            Picture::Layers if has_populations => Err("there are no layers"),
            Picture::Hysteresis | Picture::Recovery if come_by_themselves => {
                Err("populations with a rate or count of their own have no one load that could be raised")
            }
            Picture::Clients if come_by_themselves => {
                Err("populations with a rate or count of their own have no one number of clients")
            }
            _ => Ok(()),
        }
    }
}

/// Which pictures are wanted: yes, no, or, where nothing is said, if the world has them and they take a second or less.
///
/// ```
/// use relent_sim::{Picture, Pictures};
/// let pictures = Pictures::NONE.with(Picture::Heat, true);
/// assert_eq!((pictures.get(Picture::Heat), pictures.get(Picture::Layers)), (Some(true), Some(false)));
/// assert_eq!(Pictures::default().get(Picture::Heat), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pictures([Option<bool>; Picture::ALL.len()]);

impl Pictures {
    /// None of them.
    pub const NONE: Pictures = Pictures([Some(false); Picture::ALL.len()]);

    /// What is said about a picture.
    pub const fn get(&self, picture: Picture) -> Option<bool> {
        self.0[picture as usize]
    }

    /// The same wishes with one more.
    #[must_use]
    pub const fn with(mut self, picture: Picture, wanted: bool) -> Pictures {
        self.0[picture as usize] = Some(wanted);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_picture_in_the_order_of_its_number() {
        for (nth, picture) in Picture::ALL.into_iter().enumerate() {
            assert_eq!((picture as usize, Picture::parse(picture.name())), (nth, Some(picture)));
        }
        assert_eq!(Picture::parse("map"), None);
    }

    #[test]
    fn a_herd_has_no_hysteresis() {
        let herd = World::Service(Service::herd(10, 5.0));
        let has = Picture::ALL.map(|picture| picture.fits(&herd).is_ok());
        assert_eq!(has, [true, false, false, true, true]);
    }
}
