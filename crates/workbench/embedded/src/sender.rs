//! The other end of inbound SAs: packets that are built in are protected before they arrive.

use forebay_riscv::{Extension, Isa};

use crate::builtin;
use crate::elf::Executable;
use crate::image::{self, Policy, Sa};
use crate::machine::{self, Job, RunError};

/// Instructions that protecting a packet may take, with room to spare.
const LIMIT: u64 = 100_000_000_000;

/// The packets as a peer with the same SAs sends them: by our own firmware, which is run for that and not counted.
/// Packets that it drops do not arrive.
///
/// # Errors
/// That they are more than the firmware has room for.
pub fn protected(sas: &[Sa], policies: &[Policy], packets: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, RunError> {
    // An SA's addresses are those on the wire, for both ends.
    let sas: Vec<Sa> =
        sas.iter().map(|one| Sa { inbound: false, flags: one.flags & 1, ..one.clone() }).collect();
    let policies: Vec<Policy> = policies.iter().map(|one| Policy { inbound: false, ..one.clone() }).collect();
    let bodies: Vec<(bool, &[u8])> = packets.iter().map(|one| (false, one.as_slice())).collect();
    let firmware = builtin::firmware("ipsec-plain").expect("it is built in");
    let job = Job {
        executable: Executable::read(firmware).map_err(RunError::Elf)?,
        isa: Isa::base().with(Extension::M).with(Extension::C),
        input: image::input(true, &sas, &policies, &bodies),
        limit: LIMIT,
    };
    let (done, _) = machine::run(&job, &[], &mut |_| true)?;
    let results = image::results(&done.output).unwrap_or_default();
    let passed = results.into_iter().filter(|(status, _)| *status == 0);
    Ok(passed.map(|(_, packet)| packet.to_vec()).collect())
}
