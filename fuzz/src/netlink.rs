//! The kernel's XFRM messages.

use forebay_xfrm::{Filter, Frames, State, decode};

/// Takes `data` for a datagram of the kernel, behind one byte that says where in a dump it comes. Whatever it says,
/// the state goes on: a good SA is told afterwards as it was before.
pub fn netlink(data: &[u8]) {
    let Some((&stage, data)) = data.split_first() else { return };
    let mut state = State::new(Filter { allow_weak: stage & 4 != 0, ..Filter::default() });
    let mut events = Vec::new();
    state.set_address(1, [192, 0, 2, 1].into(), true, &mut events);
    if stage & 1 != 0 {
        state.begin_dump();
    }
    let mut messages = 0;
    for frame in Frames::new(data) {
        let Ok(frame) = frame else { break };
        assert!(frame.body.len() < data.len(), "a message within its datagram");
        if let Ok(message) = decode(&frame) {
            messages += 1;
            state.apply(message, &mut events);
        }
    }
    if stage & 2 != 0 {
        state.end_policies(&mut events);
        state.end_sas(&mut events);
    }
    assert!(messages > 0 || events.is_empty(), "events out of nothing");
    // One policy may tell the directions of SAs that waited, each once.
    assert!(events.len() <= 4 * messages * messages.max(4), "{} events of {messages} messages", events.len());
    let shown = format!("{events:?}");
    assert!(shown.len() < 1 << 20);
}
