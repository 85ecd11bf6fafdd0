use std::path::Path;

use forebay_links::nftables::{Counted, Table};
use forebay_xfrm::{Mark, Policy, PolicyAction, PolicyIndex, Template, Way};

use super::super::host::Firewall;
use super::super::routes::Routing;
use super::*;

/// A host that does whatever it is told.
struct Obedient;

impl Firewall for Obedient {
    fn replace(&mut self, _table: &Table) -> io::Result<u64> {
        Ok(1)
    }

    fn change(&mut self, _before: &Table, _table: &Table) -> io::Result<u64> {
        Ok(1)
    }

    fn delete(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn counted(&mut self, _name: &str) -> io::Result<Counted> {
        Ok(Counted { content: Some(1), ..Counted::default() })
    }
}

impl Routing for Obedient {
    fn add_route(&self, _network: IpNet) -> io::Result<()> {
        Ok(())
    }

    fn remove_route(&self, _network: IpNet) -> io::Result<()> {
        Ok(())
    }

    fn add_blackhole(&self, _network: IpNet) -> io::Result<()> {
        Ok(())
    }

    fn remove_blackhole(&self, _network: IpNet) -> io::Result<()> {
        Ok(())
    }
}

fn config(inside: &str, rest: &str) -> Config {
    let text = format!("[inside]\n{inside}\n[[outside]]\nkind = \"raw\"\n[keys]\nsource = \"xfrm\"\n{rest}");
    forebay_config::parse(&text, "gateway.toml", Path::new("/")).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A process that starts with what the last one saved in `to`.
fn start(config: &Config, to: &SavedRules) -> Caretaker {
    let last = to.read().unwrap().unwrap_or_default();
    let guard = Guard::new(config, Box::new(Obedient), None, last.entries).unwrap();
    let discards = comes_from_kernel(config) && !last.discarded.is_empty();
    let routes = RouteTable::default();
    routes.attach(config, Some(Box::new(Obedient)));
    routes.adopt(&last.discarded);
    let discarded = if comes_from_kernel(config) { last.discarded } else { discarded(config) };
    routes.set(vec![], discarded, true).unwrap();
    let care = Care {
        waits: AtomicBool::new(guard.map_entries(protect_any) || discards),
        said_waits: AtomicBool::default(),
        guard,
        routes,
        offloads: Offloads::new(None),
        saving: Mutex::new(Some(Saving::new(to.clone()))),
        is_the_kernels: true,
    };
    care.save(true);
    Caretaker { care: Arc::new(care), thread: Arc::default(), has_threads: false }
}

fn policies(networks: &[&str]) -> Vec<Policy> {
    let policy = |(network, number): (&&str, u32)| Policy {
        index: PolicyIndex(number),
        way: Way::Out,
        priority: 0,
        action: PolicyAction::Protect(vec![] as Vec<Template>),
        local_ts: vec!["10.1.0.0/16".parse::<IpNet>().unwrap().into()],
        remote_ts: vec![network.parse::<IpNet>().unwrap().into()],
        mark: Mark { value: 0, mask: 0 },
        if_id: 0,
        per_cpu: false,
    };
    networks.iter().zip(1..).map(policy).collect()
}

fn has(saved: &Saved, network: &str) -> (bool, bool) {
    let network: IpNet = network.parse().unwrap();
    let is_guarded = saved.entries.iter().any(|entry| entry.remote_ts == [network.into()]);
    (is_guarded, saved.discarded.contains(&network))
}

const ONE: &str = "10.2.0.0/16";
const OTHER: &str = "10.3.0.0/16";

#[test]
fn policies_that_go_one_by_one_stay_saved() {
    let directory = tempfile::tempdir().unwrap();
    let to = SavedRules::within(directory.path(), Path::new("/etc/gateway.toml"));
    let config = config("", "");
    let caretaker = start(&config, &to);
    let follow = caretaker.on_policies(&config);
    for networks in [&[ONE, OTHER][..], &[OTHER], &[]] {
        follow(&policies(networks), true);
        caretaker.care.save(true);
        let saved = to.read().unwrap().unwrap();
        assert_eq!([ONE, OTHER].map(|network| has(&saved, network)), [(true, true); 2], "{networks:?}");
    }
    assert!(caretaker.care.routes.discarded().is_empty(), "what is in force follows the kernel");
    // However long there are none.
    let later = now() + Duration::from_secs(3_600);
    caretaker.care.with_saving(|saving| caretaker.care.save_by(saving, true, later));
    assert_eq!(has(&to.read().unwrap().unwrap(), OTHER), (true, true));
    // One that went for good is forgotten after a while.
    follow(&policies(&[ONE]), true);
    caretaker.care.with_saving(|saving| caretaker.care.save_by(saving, true, later));
    let saved = to.read().unwrap().unwrap();
    assert_eq!([ONE, OTHER].map(|network| has(&saved, network)), [(true, true), (false, false)]);
}

#[test]
fn without_a_policy_the_rest_is_saved_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let to = SavedRules::within(directory.path(), Path::new("/etc/gateway.toml"));
    // Routes that the file names are discarded before there is any policy.
    start(&config("routes = [\"10.4.0.0/16\"]", ""), &to);
    assert_eq!(has(&to.read().unwrap().unwrap(), "10.4.0.0/16"), (false, true));
    // A daemon that has ended does not keep blackhole routes that are deleted at the end.
    let config = config("blackhole = \"remove\"", "");
    let caretaker = start(&config, &to);
    let follow = caretaker.on_policies(&config);
    follow(&policies(&[ONE]), true);
    follow(&[], true);
    caretaker.care.save(true);
    assert_eq!(has(&to.read().unwrap().unwrap(), ONE), (true, true));
    caretaker.end();
    assert_eq!(has(&to.read().unwrap().unwrap(), ONE), (true, false));
}

#[test]
fn blackhole_routes_wait_for_the_daemon_without_rules_of_the_guard_too() {
    let directory = tempfile::tempdir().unwrap();
    let to = SavedRules::within(directory.path(), Path::new("/etc/gateway.toml"));
    let config = config("", "[guard]\nmode = \"off\"\n");
    let caretaker = start(&config, &to);
    let follow = caretaker.on_policies(&config);
    follow(&policies(&[ONE]), true);
    follow(&[], true);
    caretaker.end();
    assert_eq!(has(&to.read().unwrap().unwrap(), ONE), (false, true));
    // The boot after that: no policy is there yet.
    let caretaker = start(&config, &to);
    let follow = caretaker.on_policies(&config);
    follow(&[], true);
    assert_eq!(caretaker.care.routes.discarded(), [ONE.parse::<IpNet>().unwrap()]);
    follow(&policies(&[OTHER]), true);
    assert_eq!(caretaker.care.routes.discarded(), [OTHER.parse::<IpNet>().unwrap()]);
}

/// Tables by their names.
#[derive(Clone, Default)]
struct Tables(Arc<Mutex<std::collections::BTreeSet<String>>>);

impl Firewall for Tables {
    fn replace(&mut self, table: &Table) -> io::Result<u64> {
        self.0.lock().unwrap().insert(table.name.clone());
        Ok(1)
    }

    fn change(&mut self, _before: &Table, _table: &Table) -> io::Result<u64> {
        Ok(1)
    }

    fn delete(&mut self, name: &str) -> io::Result<()> {
        self.0.lock().unwrap().remove(name);
        Ok(())
    }

    fn counted(&mut self, _name: &str) -> io::Result<Counted> {
        Ok(Counted { content: Some(1), ..Counted::default() })
    }
}

/// A gateway that stands by may have an interface of another name when it takes over: rules for the old one would drop what comes by it.
#[test]
fn rules_for_another_interface_take_the_place_of_those_of_before() {
    let sa = "[[sa]]\nname = \"a\"\ndirection = \"out\"\nspi = 4097\nproposal = \"aes128gcm16\"\n\
              key = \"000102030405060708090a0b0c0d0e0fdeadbeef\"\nlocal = \"192.0.2.1\"\nremote = \"192.0.2.2\"\n\
              local_ts = [\"10.1.0.0/16\"]\nremote_ts = [\"10.2.0.0/16\"]\n";
    let file = |name: &str, guard: &str| {
        let text = format!(
            "[inside]\nname = \"{name}\"\n[[outside]]\nkind = \"raw\"\n[guard]\nmode = \"{guard}\"\n{sa}"
        );
        forebay_config::parse(&text, "gateway.toml", Path::new("/")).unwrap()
    };
    let tables = Tables::default();
    let names = || tables.0.lock().unwrap().iter().cloned().collect::<Vec<_>>();
    let guard = Guard::new(&file("fb0", "auto"), Box::new(tables.clone()), None, vec![]).unwrap();
    assert_eq!(names(), ["forebay_fb0"]);
    guard.configure(&file("fb1", "auto")).unwrap();
    assert_eq!(names(), ["forebay_fb1"]);
    guard.configure(&file("fb2", "off")).unwrap();
    assert!(names().is_empty());
}
