//! Peers that move: behind a NAT, or from network to network.

use std::net::SocketAddr;

use forebay_crypto::{Direction, SessionId};

use super::{Sad, SadError, State};
use crate::sa::{Encapsulation, SaConfigError};

impl Sad {
    /// Gives the peer of an SA in UDP another address and port, as after
    /// [`EventKind::Moved`](crate::EventKind::Moved): an outbound SA sends there from now on. Whether that is another
    /// than before.
    ///
    /// # Errors
    /// If the address is of the other IP version, or another SA of that peer has the SPI.
    pub fn move_peer(&mut self, session: SessionId, to: SocketAddr) -> Result<bool, SadError> {
        let index = session.0 as usize;
        let Some(Some(config)) = self.configs.get_mut(index) else { return Ok(false) };
        let Some(state) = self.sas.get_mut(index).map(|entry| &mut entry.state) else { return Ok(false) };
        let here = SocketAddr::new(config.remote, config.udp.remote);
        if config.encapsulation != Encapsulation::Udp || here == to {
            return Ok(false);
        }
        if config.local.is_ipv4() != to.is_ipv4() {
            return Err(SadError::Config { index, error: SaConfigError::MixedFamilies });
        }
        if state.direction() == Direction::Seal && here.ip() != to.ip() {
            if let Some(&first) = self.by_peer.get(&(to.ip(), config.spi)) {
                let (first, spi) = (first as usize, config.spi);
                return Err(SadError::OverlappingSpi { first, second: index, spi });
            }
            self.by_peer.remove(&(config.remote, config.spi));
            self.by_peer.insert((to.ip(), config.spi), session.0);
        }
        (config.remote, config.udp.remote) = (to.ip(), to.port());
        if let State::Out(sa) = state {
            sa.lay_out_template(config);
        }
        Ok(true)
    }
}
