use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use forebay_crypto::SecretBytes;
use proptest::prelude::*;

use super::*;
use crate::kernel::{Algorithm, KernelTemplate, LifetimeConfig, Selector, Sequence, Usage, Way};
use crate::{PolicyAction, Refusal, Refused};

const US: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

fn any_selector() -> Selector {
    let any = (Ipv4Addr::UNSPECIFIED.into(), 0);
    Selector {
        destination: any,
        source: any,
        destination_port: (0, 0),
        source_port: (0, 0),
        any_family: true,
        protocol: 0,
        interface: 0,
        user: 0,
    }
}

/// An SA from `source` to `destination` with a key made of one byte.
fn sa(spi: u32, source: Ipv4Addr, destination: Ipv4Addr, key: u8) -> KernelSa {
    let no_limit = (u64::MAX, u64::MAX);
    KernelSa {
        id: SaId { destination: destination.into(), spi, protocol: 50, mark: Mark::default() },
        source: source.into(),
        selector: any_selector(),
        lifetime: LifetimeConfig { bytes: no_limit, packets: no_limit, added_s: (0, 0), used_s: (0, 0) },
        usage: Usage::default(),
        reqid: 1,
        mode: 1,
        replay_window: 32,
        flags: 0,
        extra_flags: 0,
        aead: Some(Algorithm {
            name: "rfc4106(gcm(aes))".to_owned(),
            key: SecretBytes::new(vec![key; 20]),
            icv_bits: Some(128),
        }),
        integrity: None,
        cipher: None,
        compresses: false,
        encap: None,
        if_id: 0,
        tfc_padding: 0,
        sequence: Sequence::default(),
        direction: None,
        offloaded: false,
        cpu: None,
    }
}

fn policy(index: u32, way: Way, source: Ipv4Addr, destination: Ipv4Addr) -> KernelPolicy {
    let template = KernelTemplate {
        destination: destination.into(),
        source: source.into(),
        spi: 0,
        protocol: 50,
        reqid: 1,
        mode: 1,
        optional: false,
    };
    KernelPolicy {
        index,
        way,
        selector: any_selector(),
        priority: 0,
        blocks: false,
        per_cpu: false,
        templates: vec![template],
        mark: Mark::default(),
        if_id: 0,
        info: Box::default(),
        raw_templates: Box::default(),
    }
}

fn added(sa: KernelSa) -> Message {
    Message::SaAdded(Box::new(sa))
}

fn at_home() -> State {
    let mut state = State::new(Filter::default());
    state.set_address(1, US.into(), true, &mut Vec::new());
    state
}

/// The events as short words.
fn words(state: &mut State, messages: impl IntoIterator<Item = Message>) -> Vec<String> {
    let mut events = Vec::new();
    for message in messages {
        state.apply(message, &mut events);
    }
    events.iter().map(word).collect()
}

fn word(event: &Event) -> String {
    match event {
        Event::SaAdded(sa) => format!("+{}{:?}", sa.id.spi, sa.direction),
        Event::SaUpdated(sa) => format!("={}{:?}", sa.id.spi, sa.direction),
        Event::SaDeleted(id) => format!("-{}", id.spi),
        Event::SaExpired { id, hard } => format!("{}{}", if *hard { "!" } else { "?" }, id.spi),
        Event::SaRefused { id, .. } => format!("x{}", id.spi),
        Event::PolicyAdded(policy) => format!("+p{}", policy.index.0),
        Event::PolicyUpdated(policy) => format!("=p{}", policy.index.0),
        Event::PolicyDeleted(index) => format!("-p{}", index.0),
        Event::PolicyRefused { policy, .. } => format!("xp{}", policy.index.0),
        other => format!("{other:?}"),
    }
}

#[test]
fn an_sa_with_the_cipher_key_of_another_is_refused_until_that_is_gone() {
    let mut state = at_home();
    let (first, twin, third) = (sa(1, PEER, US, 1), sa(2, US, PEER, 1), sa(3, US, PEER, 3));
    let (first_id, twin_id) = (first.id, twin.id);
    let mut events = Vec::new();
    for one in [first, twin, third] {
        state.apply(added(one), &mut events);
    }
    assert_eq!(events.iter().map(word).collect::<Vec<_>>(), ["+1Open", "x2", "+3Seal"]);
    let Event::SaRefused { reason, .. } = &events[1] else { panic!("{events:?}") };
    assert_eq!(*reason, Refusal::SharedKey(first_id));
    assert!(reason.to_string().contains("0x00000001"), "{reason}");
    // An update of the owner is none of a twin.
    let mut changed = sa(1, PEER, US, 1);
    changed.replay_window = 64;
    assert_eq!(words(&mut state, [added(changed)]), ["=1Open"]);
    assert_eq!(words(&mut state, [Message::SaDeleted(first_id)]), ["-1", "+2Seal"]);
    assert_eq!(words(&mut state, [added(sa(4, PEER, US, 1))]), ["x4"]);
    // With all of them gone none of them comes back.
    assert_eq!(words(&mut state, [Message::SasFlushed(0)]).len(), 3);
    assert_eq!(words(&mut state, [added(sa(5, US, PEER, 1)), Message::SaDeleted(twin_id)]), ["+5Seal"]);
}

#[test]
fn another_salt_makes_no_other_cipher_key() {
    let mut state = at_home();
    let mut salted = vec![1; 16];
    salted.extend([9; 4]);
    let mut twin = sa(2, US, PEER, 1);
    twin.aead.as_mut().unwrap().key = SecretBytes::new(salted);
    assert_eq!(words(&mut state, [added(sa(1, PEER, US, 1)), added(twin)]), ["+1Open", "x2"]);
}

#[test]
fn a_rekey_keeps_the_old_inbound_sa_until_it_is_deleted() {
    let (old, new) = (sa(1, PEER, US, 1), sa(2, PEER, US, 2));
    let old_id = old.id;
    let heard = words(&mut at_home(), [added(old), added(new), Message::SaDeleted(old_id)]);
    assert_eq!(heard, ["+1Open", "+2Open", "-1"]);
}

#[test]
fn an_sa_waits_until_a_policy_or_an_address_tells_its_direction() {
    let mut state = State::new(Filter::default());
    let (inbound, outbound) = (sa(1, PEER, US, 1), sa(2, US, PEER, 2));
    assert!(words(&mut state, [added(inbound), added(outbound)]).is_empty());
    assert_eq!(state.waiting().count(), 2);
    let out = Message::Policy(Box::new(policy(8, Way::Out, US, PEER)));
    assert_eq!(words(&mut state, [out]), ["+p8", "+2Seal"]);
    let mut events = Vec::new();
    state.set_address(3, US.into(), true, &mut events);
    assert_eq!(events.iter().map(word).collect::<Vec<_>>(), ["+1Open"]);
    // What is known is not asked again.
    state.set_address(3, US.into(), false, &mut events);
    assert_eq!(events.len(), 1);
}

#[test]
fn what_contradicts_itself_tells_no_direction() {
    let mut state = State::new(Filter::default());
    let both = [policy(8, Way::Out, US, PEER), policy(9, Way::In, US, PEER)];
    let messages = both.map(|policy| Message::Policy(Box::new(policy)));
    assert_eq!(words(&mut state, messages), ["+p8", "+p9"]);
    assert!(words(&mut state, [added(sa(1, US, PEER, 1))]).is_empty());
    assert_eq!(words(&mut state, [Message::PolicyDeleted(9)]), ["-p9"]);
    let mut events = Vec::new();
    state.set_address(1, US.into(), true, &mut events);
    assert_eq!(events.iter().map(word).collect::<Vec<_>>(), ["+1Seal"]);
}

#[test]
fn a_direction_that_is_said_needs_nobody() {
    let mut said = sa(1, PEER, US, 1);
    said.direction = Some(Direction::Seal);
    assert_eq!(words(&mut State::new(Filter::default()), [added(said)]), ["+1Seal"]);
}

#[test]
fn the_filter_leaves_others_to_the_kernel() {
    let mark = Mark { value: 0x42, mask: u32::MAX };
    let mut state = State::new(Filter { mark: Some(mark), if_id: Some(7), allow_weak: false });
    state.set_address(1, US.into(), true, &mut Vec::new());
    let mut ours = sa(1, PEER, US, 1);
    (ours.id.mark, ours.if_id) = (mark, 7);
    let mut other = ours.clone();
    (other.id.spi, other.if_id) = (2, 8);
    let third = sa(3, PEER, US, 1);
    assert_eq!(words(&mut state, [added(ours), added(other), added(third)]), ["+1Open"]);
}

#[test]
fn marks_and_interface_ids_are_taken_only_where_asked_for() {
    let (mark, if_id) = (Mark { value: 0x42, mask: u32::MAX }, 7);
    let filter = |mark, if_id| Filter { mark, if_id, allow_weak: false };
    let sas = || {
        let kinds = [(Mark::default(), 0), (mark, 0), (Mark::default(), if_id), (mark, if_id)];
        kinds.into_iter().zip(1..).map(|((mark, if_id), n)| {
            let mut one = sa(n, PEER, US, n as u8);
            (one.id.mark, one.if_id) = (mark, if_id);
            added(one)
        })
    };
    let policies = || {
        let kinds = [(Mark::default(), 0), (mark, 0), (Mark::default(), if_id), (mark, if_id)];
        kinds.into_iter().zip(1..).map(|((mark, if_id), n)| {
            let mut one = policy(n, Way::In, PEER, US);
            (one.mark, one.if_id) = (mark, if_id);
            Message::Policy(Box::new(one))
        })
    };
    for (filter, taken) in [
        (filter(None, None), 1),
        (filter(Some(mark), None), 2),
        (filter(None, Some(if_id)), 3),
        (filter(Some(mark), Some(if_id)), 4),
    ] {
        let mut state = State::new(filter);
        state.set_address(1, US.into(), true, &mut Vec::new());
        assert_eq!(words(&mut state, sas()), [format!("+{taken}Open")]);
        assert_eq!(words(&mut state, policies()), [format!("+p{taken}")]);
    }
}

#[test]
fn a_larval_sa_is_none_yet() {
    let mut larval = sa(1, PEER, US, 1);
    larval.aead = None;
    let whole = Message::SaUpdated(Box::new(sa(1, PEER, US, 1)));
    assert_eq!(words(&mut at_home(), [added(larval), whole]), ["+1Open"]);
}

#[test]
fn an_update_keeps_keys_and_counters() {
    let mut state = at_home();
    words(&mut state, [added(sa(1, PEER, US, 1))]);
    let mut update = sa(1, PEER, US, 9);
    update.encap = Some(crate::Encap { kind: 2, source_port: 4500, destination_port: 4500 });
    assert_eq!(words(&mut state, [Message::SaUpdated(Box::new(update))]), ["=1Open"]);
    let id = sa(1, PEER, US, 0).id;
    assert_eq!(state.sa(&id).unwrap().aead.as_ref().unwrap().key.expose(), [1; 20]);
}

#[test]
fn another_sa_by_the_same_name_replaces_the_first() {
    let mut state = at_home();
    let heard = words(&mut state, [added(sa(1, PEER, US, 1)), added(sa(1, PEER, US, 2))]);
    assert_eq!(heard, ["+1Open", "-1", "+1Open"]);
}

#[test]
fn hidden_and_weak_keys_are_refused_with_the_reason() {
    let mut state = at_home();
    let mut events = Vec::new();
    state.apply(added(sa(1, PEER, US, 0)), &mut events);
    assert!(matches!(events[..], [Event::SaRefused { reason: Refusal::KeysHidden, .. }]));
    let mut beet = sa(2, PEER, US, 1);
    beet.mode = 4;
    state.apply(added(beet), &mut events);
    assert!(matches!(events[1], Event::SaRefused { reason: Refusal::Mode(4), .. }));
    // A refused SA ends in silence, as it was never there.
    assert!(words(&mut state, [Message::SaDeleted(sa(1, PEER, US, 0).id)]).is_empty());
}

#[test]
fn a_policy_that_cannot_be_followed_comes_as_one_that_discards() {
    let mut state = at_home();
    let mut events = Vec::new();
    let change = |change: fn(&mut KernelPolicy)| {
        let mut one = policy(8, Way::Out, US, PEER);
        one.selector.destination = (Ipv4Addr::new(10, 2, 0, 0).into(), 16);
        one.selector.any_family = false;
        one.priority = 7;
        change(&mut one);
        one
    };
    let refused = |bypasses, interface| PolicyAction::Refused(Refused { bypasses, interface });
    let cases: [(KernelPolicy, PolicyAction, &str); 6] = [
        // ESP within AH: neither is enough.
        (
            change(|one| {
                one.templates =
                    [50, 51].map(|protocol| KernelTemplate { protocol, ..one.templates[0] }).into()
            }),
            refused(false, None),
            "2 nested SAs",
        ),
        (change(|one| one.templates[0].mode = 4), refused(false, None), "mode 4"),
        (change(|one| one.templates[0].protocol = 108), refused(false, None), "protocol 108"),
        (change(|one| one.selector.user = 7), refused(false, None), "one user"),
        (
            change(|one| {
                one.templates.clear();
                one.selector.interface = 3
            }),
            refused(true, Some(3)),
            "one interface",
        ),
        (
            change(|one| {
                one.blocks = true;
                one.selector.interface = 3
            }),
            PolicyAction::Discard,
            "one interface",
        ),
    ];
    for (kernel, action, why) in cases {
        state.apply(Message::Policy(Box::new(kernel)), &mut events);
        let Some(Event::PolicyRefused { policy, reason }) = events.pop() else { panic!("{events:?}") };
        assert_eq!(
            (policy.index.0, policy.way, policy.priority, policy.action.clone()),
            (8, Way::Out, 7, action)
        );
        assert_eq!(policy.remote_ts, ["10.2.0.0/16".parse().unwrap()], "no narrower than the kernel's");
        assert!(reason.to_string().contains(why), "{reason}");
    }
    // What has no like is left out, of both protocol and ports.
    let ports = change(|one| (one.selector.protocol, one.selector.destination_port) = (6, (80, 0xf0f0)));
    state.apply(Message::Policy(Box::new(ports)), &mut events);
    let Some(Event::PolicyRefused { policy: wider, .. }) = events.pop() else { panic!("{events:?}") };
    assert_eq!(wider.remote_ts, ["10.2.0.0/16".parse().unwrap()]);
    // It has its end, and may become one that is followed.
    let whole = Message::Policy(Box::new(change(|_| {})));
    assert_eq!(words(&mut state, [whole, Message::PolicyDeleted(8)]), ["=p8", "-p8"]);
}

#[test]
fn expiries_are_told_and_a_hard_one_is_the_end() {
    let mut state = at_home();
    let id = sa(1, PEER, US, 1).id;
    let soft = Message::SaExpired { id, hard: false };
    let hard = Message::SaExpired { id, hard: true };
    let deleted = Message::SaDeleted(id);
    assert_eq!(words(&mut state, [added(sa(1, PEER, US, 1)), soft, hard, deleted]), ["+1Open", "?1", "!1"]);
}

#[test]
fn limits_are_what_is_left_of_them() {
    let mut state = at_home();
    let mut used = sa(1, US, PEER, 1);
    used.lifetime.bytes = (1000, 2000);
    used.lifetime.packets = (u64::MAX, 10);
    used.usage = Usage { bytes: 1500, packets: 4, added_s: 5, used_s: 6 };
    let mut events = Vec::new();
    state.apply(added(used), &mut events);
    let Event::SaAdded(sa) = &events[0] else { panic!("{events:?}") };
    let lifetime = sa.config.lifetime;
    assert_eq!((lifetime.soft.bytes, lifetime.hard.bytes), (Some(1), Some(500)));
    assert_eq!((lifetime.soft.packets, lifetime.hard.packets), (None, Some(6)));
    assert_eq!((lifetime.soft.time, lifetime.hard.time), (None, None));
}

#[test]
fn templates_find_their_sas() {
    let mut state = at_home();
    let mut events = Vec::new();
    state.apply(Message::Policy(Box::new(policy(8, Way::Out, US, PEER))), &mut events);
    state.apply(added(sa(1, US, PEER, 1)), &mut events);
    let mut other = sa(2, US, PEER, 2);
    other.reqid = 2;
    state.apply(added(other), &mut events);
    let [Event::PolicyAdded(policy), Event::SaAdded(first), Event::SaAdded(second)] = &events[..] else {
        panic!("{events:?}")
    };
    let PolicyAction::Protect(templates) = &policy.action else { panic!("{policy:?}") };
    assert!(templates[0].wants(first) && !templates[0].wants(second));
}

#[test]
fn an_sa_says_which_cpu_it_is_for_and_another_cpu_is_an_update() {
    let mut state = at_home();
    let mut events = Vec::new();
    let mut wanted = policy(8, Way::Out, US, PEER);
    wanted.per_cpu = true;
    state.apply(Message::Policy(Box::new(wanted)), &mut events);
    let bound = |cpu| KernelSa { cpu, ..sa(1, US, PEER, 1) };
    for cpu in [None, Some(1), Some(1), Some(0)] {
        state.apply(added(bound(cpu)), &mut events);
    }
    let [
        Event::PolicyAdded(policy),
        Event::SaAdded(first),
        Event::SaUpdated(second),
        Event::SaUpdated(third),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert!(policy.per_cpu);
    assert_eq!([first, second, third].map(|sa| sa.config.cpu), [None, Some(1), Some(0)]);
}

#[test]
fn debug_output_shows_no_keys() {
    let mut state = at_home();
    let mut events = Vec::new();
    state.apply(added(sa(1, PEER, US, 0xab)), &mut events);
    let shown = format!("{events:?} {state:?}");
    assert!(shown.contains("20 secret bytes") && !shown.contains("171") && !shown.contains("abab"));
}

/// What a kernel does, and what happens to its messages.
#[derive(Clone, Debug)]
enum Step {
    Add(u32, u8),
    Delete(u32),
    Expire(u32),
    Change(u32),
    Flush,
    AddPolicy(u32),
    DeletePolicy(u32),
    FlushPolicies,
    /// From here on messages are lost until they are counted again.
    Lose,
    /// A dump: `true` for what comes between its two halves is told on the way.
    Dump(Vec<Step>),
}

fn step() -> impl Strategy<Value = Step> {
    let name = 1..6u32;
    let simple = prop_oneof![
        6 => (name.clone(), 1..4u8).prop_map(|(spi, key)| Step::Add(spi, 4 * spi as u8 + key)),
        4 => name.clone().prop_map(Step::Delete),
        1 => name.clone().prop_map(Step::Expire),
        2 => name.clone().prop_map(Step::Change),
        1 => Just(Step::Flush),
        4 => name.clone().prop_map(Step::AddPolicy),
        3 => name.prop_map(Step::DeletePolicy),
        1 => Just(Step::FlushPolicies),
        1 => Just(Step::Lose),
    ];
    let dump = prop::collection::vec(simple.clone(), 0..6).prop_map(Step::Dump);
    prop_oneof![8 => simple, 2 => dump]
}

/// A kernel that is a map, and a listener that believes every event and checks that none comes twice.
#[derive(Default)]
struct World {
    sas: BTreeMap<u32, KernelSa>,
    policies: BTreeSet<u32>,
    told: BTreeMap<u32, (Vec<u8>, u32)>,
    told_policies: BTreeSet<u32>,
    losing: bool,
    state: State,
}

impl World {
    fn say(&mut self, message: Message) {
        if !self.losing {
            self.hear(|state, events| state.apply(message, events));
        }
    }

    fn hear(&mut self, what: impl FnOnce(&mut State, &mut Vec<Event>)) {
        let mut events = Vec::new();
        what(&mut self.state, &mut events);
        for event in events {
            match event {
                Event::SaAdded(sa) => {
                    let value = (sa.keys.cipher().to_vec(), sa.reqid);
                    assert_eq!(self.told.insert(sa.id.spi, value), None, "told twice");
                }
                Event::SaUpdated(sa) => {
                    let value = (sa.keys.cipher().to_vec(), sa.reqid);
                    assert!(self.told.insert(sa.id.spi, value).is_some(), "changed before it was added");
                }
                Event::SaDeleted(id) | Event::SaExpired { id, hard: true } => {
                    assert!(self.told.remove(&id.spi).is_some(), "gone before it was added");
                }
                Event::PolicyAdded(policy) => assert!(self.told_policies.insert(policy.index.0)),
                Event::PolicyDeleted(index) => assert!(self.told_policies.remove(&index.0)),
                Event::SasFlushed | Event::PoliciesFlushed => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Add(spi, key) if !self.sas.contains_key(&spi) => {
                let new = sa(spi, PEER, US, key);
                self.sas.insert(spi, new.clone());
                self.say(added(new));
            }
            Step::Delete(spi) if self.sas.remove(&spi).is_some() => {
                self.say(Message::SaDeleted(sa(spi, PEER, US, 1).id));
            }
            Step::Expire(spi) if self.sas.remove(&spi).is_some() => {
                self.say(Message::SaExpired { id: sa(spi, PEER, US, 1).id, hard: true });
            }
            Step::Change(spi) => {
                if let Some(known) = self.sas.get_mut(&spi) {
                    known.reqid += 1;
                    let known = Box::new(known.clone());
                    self.say(Message::SaUpdated(known));
                }
            }
            Step::Flush => {
                self.sas.clear();
                self.say(Message::SasFlushed(0));
            }
            Step::AddPolicy(index) if self.policies.insert(index) => {
                self.say(Message::Policy(Box::new(policy(index, Way::In, PEER, US))));
            }
            Step::DeletePolicy(index) if self.policies.remove(&index) => {
                self.say(Message::PolicyDeleted(index))
            }
            Step::FlushPolicies => {
                self.policies.clear();
                self.say(Message::PoliciesFlushed(0));
            }
            Step::Lose => self.losing = true,
            Step::Dump(between) => self.dump(between),
            _ => {}
        }
    }

    /// Both lists in two parts each, with other things happening between; a walk of the kernel's list gives what is
    /// there when it comes by.
    fn dump(&mut self, between: Vec<Step>) {
        self.losing = false;
        self.state.begin_dump();
        let mut between = between.into_iter();
        for (from, to) in [(0, 3), (3, 9)] {
            for index in self.policies.range(from..to).copied().collect::<Vec<_>>() {
                self.say(Message::Policy(Box::new(policy(index, Way::In, PEER, US))));
            }
            between.by_ref().take(1).for_each(|step| self.step(step));
        }
        if !self.losing {
            self.hear(|state, events| state.end_policies(events));
        }
        for (from, to) in [(0, 2), (2, 4), (4, 9)] {
            for sa in self.sas.range(from..to).map(|(_, sa)| sa.clone()).collect::<Vec<_>>() {
                self.say(added(sa));
            }
            between.by_ref().take(1).for_each(|step| self.step(step));
        }
        if !self.losing {
            self.hear(|state, events| state.end_sas(events));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever happens, whatever is lost and whatever falls into a dump: after the next whole dump the listener has
    /// what the kernel has, and has been told nothing twice.
    #[test]
    fn after_a_dump_the_listener_knows_what_the_kernel_has(steps in prop::collection::vec(step(), 0..60)) {
        let mut world = World { state: at_home(), ..World::default() };
        for step in steps {
            world.step(step);
            if !world.losing {
                world.compare();
            }
        }
        world.dump(Vec::new());
        world.compare();
    }
}

impl World {
    fn compare(&self) {
        let there: BTreeMap<_, _> = self
            .sas
            .iter()
            .map(|(&spi, sa)| (spi, (sa.aead.as_ref().unwrap().key.expose()[..16].to_vec(), sa.reqid)))
            .collect();
        assert_eq!(self.told, there);
        assert_eq!(self.told_policies, self.policies);
    }
}
