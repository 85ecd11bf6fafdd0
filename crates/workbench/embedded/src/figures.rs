//! What is reported of a run.

use forebay_riscv::{Account, Cause, Class};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::area::{Clock, Part};
use crate::energy;
use crate::groups::Groups;
use crate::machine::Done;
use crate::setup::Setup;

/// A run of a firmware in one configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// All cycles.
    pub cycles: u64,
    /// Instructions executed.
    pub instructions: u64,
    /// Cycles an instruction.
    pub cpi: f64,
    /// Packets of the input.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Packets that did not pass, of those that the firmware gave back.
    pub dropped: u64,
    /// What the firmware ended with; 0: all well.
    pub code: u32,
    /// Cycles a packet.
    pub cycles_per_packet: f64,
    /// Cycles a byte.
    pub cycles_per_byte: f64,
    /// Clock frequency, and what limits it.
    pub clock: Clock,
    /// Time of a packet at that clock in microseconds.
    pub us_per_packet: f64,
    /// Energy of a packet in joules, if the file gives energies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_per_packet_j: Option<f64>,
    /// Mean power at that clock in watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_power_w: Option<f64>,
    /// The parts of that energy, of the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<energy::Part>,
    /// Area, thousand gate equivalents.
    pub area_kge: f64,
    /// The parts of that estimate.
    pub area: Vec<Part>,
    /// Cycles by cause.
    pub causes: Vec<Share>,
    /// By kind of instruction.
    pub classes: Vec<ClassShare>,
    /// Cycles by side: protocol, crypto, other.
    pub sides: Vec<Share>,
    /// By group of functions.
    pub groups: Vec<GroupShare>,
    /// By function, most cycles first.
    pub functions: Vec<FunctionShare>,
    /// How often memory was asked.
    pub memory: MemoryCounts,
    /// What the calls would cost a core with register windows, by the size of its file.
    #[serde(default)]
    pub windows: Vec<WindowCounts>,
    /// Where the cycles went, for every path of calls: the stacks of a flame graph.
    #[serde(skip)]
    pub stacks: Vec<Stack>,
}

/// Cycles of something.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Share {
    /// What.
    pub name: String,
    /// Cycles.
    pub cycles: u64,
}

/// Cycles and instructions of a class.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClassShare {
    /// Its name.
    pub name: String,
    /// Instructions.
    pub instructions: u64,
    /// Cycles, with all that they waited for.
    pub cycles: u64,
    /// Cycles on the protocol's side, and on the cryptographic one.
    pub protocol_cycles: u64,
    /// As above.
    pub crypto_cycles: u64,
}

/// Cycles of a group of functions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupShare {
    /// Its name.
    pub name: String,
    /// Its side.
    pub side: String,
    /// Instructions.
    pub instructions: u64,
    /// Cycles.
    pub cycles: u64,
    /// Cycles by cause, in the order of [`Cause::ALL`].
    pub causes: Vec<u64>,
    /// Bytes of the code of those of its functions that ran.
    #[serde(default)]
    pub code_bytes: u64,
}

/// Cycles of a function, without those that it calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionShare {
    /// Its name.
    pub name: String,
    /// Instructions.
    pub instructions: u64,
    /// Cycles.
    pub cycles: u64,
    /// Cycles by cause, in the order of [`Cause::ALL`].
    pub causes: Vec<u64>,
    /// Cycles with those of all that it calls.
    #[serde(default)]
    pub total_cycles: u64,
    /// Bytes of its code.
    #[serde(default)]
    pub code_bytes: u64,
}

/// Exceptions of register windows that move by 8 registers a call; RISC-V has none, and no cycles are counted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WindowCounts {
    /// Registers of the file.
    pub registers: u32,
    /// Calls that put a window on the stack.
    pub overflows: u64,
    /// Returns that brought one back.
    pub underflows: u64,
}

/// Requests to memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MemoryCounts {
    /// Lines of code fetched.
    pub fetch_misses: u64,
    /// Reads of the data cache: one for each load, one for each line that a vector load lies in.
    pub loads: u64,
    /// Lines fetched for loads.
    pub load_misses: u64,
    /// Writes: one for each store, one for each beat of a store that is wider than the memory interface.
    pub stores: u64,
    /// Writes whose line was not in the cache.
    pub store_misses: u64,
    /// Written lines that made room.
    pub written_back: u64,
}

/// A path of calls and its cycles.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The functions' names, the outermost first.
    pub path: Vec<String>,
    /// Cycles of the innermost.
    pub cycles: u64,
    /// The group of the innermost, by its number.
    pub group: usize,
}

const CAUSES: usize = Cause::ALL.len();

/// The cycles of a run, added up in several ways.
struct Cycles {
    causes: [u64; CAUSES],
    /// By class of instructions: how many there are, cycles, and those of the protocol and of cryptography.
    classes: Vec<[u64; 4]>,
    /// Instructions, and cycles by cause.
    by_group: Vec<(u64, [u64; CAUSES])>,
    by_function: Vec<(u64, [u64; CAUSES])>,
    by_node: Vec<u64>,
}

impl Cycles {
    fn of(done: &Done, account: &Account, groups: &Groups, group_of: &[usize]) -> Cycles {
        let mut causes = [0_u64; CAUSES];
        let mut classes = vec![[0_u64; 4]; Class::ALL.len()];
        let mut by_group = vec![(0_u64, [0_u64; CAUSES]); groups.names().len()];
        let mut by_function = vec![(0_u64, [0_u64; CAUSES]); done.functions.len()];
        let mut by_node = vec![0_u64; done.nodes.len()];
        let names = groups.names();
        for cell in &account.cells {
            let (node, cause, class) = (cell.node as usize, cell.cause as usize, cell.class as usize);
            let (group, function) = (group_of[node], done.nodes[node].function as usize);
            let issued = if cell.cause == Cause::Issue { cell.cycles } else { 0 };
            causes[cause] += cell.cycles;
            by_node[node] += cell.cycles;
            for (instructions, cycles) in [&mut by_group[group], &mut by_function[function]] {
                *instructions += issued;
                cycles[cause] += cell.cycles;
            }
            let counts = &mut classes[class];
            counts[0] += issued;
            counts[1] += cell.cycles;
            match groups.side(names[group]) {
                "protocol" => counts[2] += cell.cycles,
                "crypto" => counts[3] += cell.cycles,
                _ => {}
            }
        }
        Cycles { causes, classes, by_group, by_function, by_node }
    }
}

impl Figures {
    /// The figures of a run; `size` is its packets and their bytes.
    pub fn new(
        done: &Done,
        account: &Account,
        groups: &Groups,
        area: Vec<Part>,
        clock: Clock,
        energy: Vec<energy::Part>,
        size: (u64, u64),
    ) -> Figures {
        let names = groups.names();
        let group_of = groups.of_nodes(&done.functions, &done.nodes);
        let Cycles { causes, classes, by_group, by_function, by_node } =
            Cycles::of(done, account, groups, &group_of);
        let totals = totals(done, &by_node);
        let code_bytes = code_bytes(done, groups, &by_function);
        let group_shares: Vec<GroupShare> = names
            .iter()
            .zip(&by_group)
            .zip(code_bytes)
            .map(|((name, (instructions, causes)), code_bytes)| GroupShare {
                code_bytes,
                name: (*name).to_owned(),
                side: groups.side(name).to_owned(),
                instructions: *instructions,
                cycles: causes.iter().sum(),
                causes: causes.to_vec(),
            })
            .collect();
        let mut sides: Vec<Share> = Vec::new();
        for share in &group_shares {
            match sides.iter_mut().find(|one| one.name == share.side) {
                Some(side) => side.cycles += share.cycles,
                None => sides.push(Share { name: share.side.clone(), cycles: share.cycles }),
            }
        }
        let mut functions: Vec<FunctionShare> = done
            .functions
            .iter()
            .zip(&by_function)
            .zip(totals)
            .filter(|((_, (instructions, _)), _)| *instructions > 0)
            .map(|((function, (instructions, causes)), total_cycles)| FunctionShare {
                total_cycles,
                code_bytes: (function.end - function.start).into(),
                name: function.name.clone(),
                instructions: *instructions,
                cycles: causes.iter().sum(),
                causes: causes.to_vec(),
            })
            .collect();
        functions.sort_by(|a, b| (b.cycles, &a.name).cmp(&(a.cycles, &b.name)));
        let stacks = (1..done.nodes.len())
            .filter(|&node| by_node[node] > 0)
            .map(|node| Stack { path: path(done, node), cycles: by_node[node], group: group_of[node] })
            .collect();
        let per = |count: u64| if count == 0 { 0.0 } else { account.cycles as f64 / count as f64 };
        let class_shares = Class::ALL.into_iter().zip(&classes);
        let joules: f64 = energy.iter().map(|part| part.joules).sum();
        let over = |whole: f64| (!energy.is_empty()).then(|| if whole > 0.0 { joules / whole } else { 0.0 });
        Figures {
            energy_per_packet_j: over(size.0 as f64),
            average_power_w: over(account.cycles as f64 / clock.mhz / 1e6),
            energy,
            cycles: account.cycles,
            instructions: account.instructions,
            cpi: per(account.instructions),
            packets: size.0,
            bytes: size.1,
            dropped: crate::image::results(&done.output)
                .map_or(0, |all| all.iter().filter(|(status, _)| *status != 0).count() as u64),
            code: done.code,
            cycles_per_packet: per(size.0),
            cycles_per_byte: per(size.1),
            us_per_packet: per(size.0) / clock.mhz,
            clock,
            area_kge: area.iter().map(|part| part.kge).sum(),
            area,
            causes: Cause::ALL
                .into_iter()
                .zip(causes)
                .map(|(cause, cycles)| Share { name: cause.name().to_owned(), cycles })
                .collect(),
            classes: class_shares
                .map(|(class, counts)| ClassShare {
                    name: class.name().to_owned(),
                    instructions: counts[0],
                    cycles: counts[1],
                    protocol_cycles: counts[2],
                    crypto_cycles: counts[3],
                })
                .collect(),
            sides,
            groups: group_shares,
            functions,
            memory: MemoryCounts {
                fetch_misses: account.misses.fetch,
                loads: account.misses.loads,
                load_misses: account.misses.load,
                stores: account.misses.stores,
                store_misses: account.misses.store,
                written_back: account.misses.written_back,
            },
            windows: account
                .windows
                .iter()
                .map(|one| WindowCounts {
                    registers: one.registers,
                    overflows: one.overflows,
                    underflows: one.underflows,
                })
                .collect(),
            stacks,
        }
    }

    /// Figures of nothing.
    #[cfg(test)]
    pub(crate) fn nothing() -> Figures {
        let done = Done {
            code: 0,
            instructions: 0,
            output: Vec::new(),
            printed: String::new(),
            functions: Vec::new(),
            nodes: Vec::new(),
        };
        let account = Account {
            cycles: 0,
            instructions: 0,
            cells: Vec::new(),
            events: Vec::new(),
            misses: forebay_riscv::Misses::default(),
            windows: [32, 64].map(forebay_riscv::Windows::new),
        };
        let clock = Clock { mhz: 100.0, limit: "core".to_owned() };
        Figures::new(&done, &account, &Groups::ours(), Vec::new(), clock, Vec::new(), (0, 0))
    }

    /// Time of all cycles in microseconds.
    pub fn us(&self) -> f64 {
        self.cycles as f64 / self.clock.mhz
    }

    /// A side's cycles.
    pub fn side(&self, name: &str) -> u64 {
        self.sides.iter().find(|one| one.name == name).map_or(0, |one| one.cycles)
    }

    /// The document of a run (`--json`).
    pub fn document(&self, setup: &Setup) -> Json {
        let Setup { notes, resolved, .. } = setup;
        json!({ "schema": 1, "model": "embedded", "figures": self, "notes": notes, "resolved": resolved })
    }

    /// All numbers by name, in a fixed order: a row of a table.
    pub fn row(&self) -> Vec<(String, f64)> {
        let mut row = vec![
            ("cycles".to_owned(), self.cycles as f64),
            ("instructions".to_owned(), self.instructions as f64),
            ("cpi".to_owned(), self.cpi),
            ("packets".to_owned(), self.packets as f64),
            ("bytes".to_owned(), self.bytes as f64),
            ("dropped".to_owned(), self.dropped as f64),
            ("cycles_per_packet".to_owned(), self.cycles_per_packet),
            ("cycles_per_byte".to_owned(), self.cycles_per_byte),
            ("area_kge".to_owned(), self.area_kge),
            ("clock_mhz".to_owned(), self.clock.mhz),
            ("us_per_packet".to_owned(), self.us_per_packet),
        ];
        let energy =
            [("energy_per_packet_j", self.energy_per_packet_j), ("average_power_w", self.average_power_w)];
        row.extend(energy.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        row.extend(self.energy.iter().map(|one| (format!("energy.{}", one.name), one.joules)));
        row.extend(self.causes.iter().map(|one| (format!("cause.{}", one.name), one.cycles as f64)));
        for one in &self.groups {
            row.push((format!("group.{}", one.name), one.cycles as f64));
        }
        row.extend(self.sides.iter().map(|one| (format!("side.{}", one.name), one.cycles as f64)));
        for one in &self.classes {
            row.push((format!("class.{}.instructions", one.name), one.instructions as f64));
            row.push((format!("class.{}.cycles", one.name), one.cycles as f64));
            row.push((format!("class.{}.protocol", one.name), one.protocol_cycles as f64));
            row.push((format!("class.{}.crypto", one.name), one.crypto_cycles as f64));
        }
        row.extend(self.functions.iter().map(|one| (format!("function.{}", one.name), one.cycles as f64)));
        row.extend(self.groups.iter().map(|one| (format!("code.{}", one.name), one.code_bytes as f64)));
        for one in &self.windows {
            row.push((format!("windows.{}.overflows", one.registers), one.overflows as f64));
            row.push((format!("windows.{}.underflows", one.registers), one.underflows as f64));
        }
        row.extend(self.area.iter().map(|one| (format!("area.{}", one.name), one.kge)));
        for (name, count) in [
            ("fetch_misses", self.memory.fetch_misses),
            ("loads", self.memory.loads),
            ("load_misses", self.memory.load_misses),
            ("stores", self.memory.stores),
            ("store_misses", self.memory.store_misses),
        ] {
            row.push((format!("memory.{name}"), count as f64));
        }
        row
    }

    /// [`Figures::row`], and what would make a table too wide: what the firmware ended with, the cycles of functions
    /// with all that they call, and the cycles of groups by cause.
    pub fn by_name(&self) -> Vec<(String, f64)> {
        let mut all = self.row();
        all.push(("exit_code".to_owned(), self.code.into()));
        all.extend(self.functions.iter().map(|one| (format!("total.{}", one.name), one.total_cycles as f64)));
        for group in &self.groups {
            let causes = Cause::ALL.into_iter().zip(&group.causes);
            all.extend(
                causes.map(|(cause, &cycles)| {
                    (format!("group.{}.{}", group.name, cause.name()), cycles as f64)
                }),
            );
        }
        all
    }

    /// Stacks in the form that flame graph programs read: `a;b;c cycles`.
    pub fn folded(&self) -> String {
        let mut lines: Vec<String> =
            self.stacks.iter().map(|one| format!("{} {}\n", one.path.join(";"), one.cycles)).collect();
        lines.sort();
        lines.concat()
    }
}

/// Cycles of each function with those of all that it calls; a function is in a path once.
fn totals(done: &Done, by_node: &[u64]) -> Vec<u64> {
    let mut within = by_node.to_vec();
    let mut totals = vec![0; done.functions.len()];
    // A node comes after its parent.
    for (at, node) in done.nodes.iter().enumerate().rev() {
        totals[node.function as usize] += within[at];
        if at > 0 {
            within[node.parent as usize] += within[at];
        }
    }
    totals
}

/// Bytes of code that ran, by group; functions of no group (`memcpy`) are in none.
fn code_bytes(done: &Done, groups: &Groups, by_function: &[(u64, [u64; CAUSES])]) -> Vec<u64> {
    let mut bytes = vec![0; groups.names().len()];
    for (function, (instructions, _)) in done.functions.iter().zip(by_function) {
        if let Some(group) = groups.of(&function.name).filter(|_| *instructions > 0) {
            bytes[group] += u64::from(function.end - function.start);
        }
    }
    bytes
}

fn path(done: &Done, mut node: usize) -> Vec<String> {
    let mut path = Vec::new();
    while node != 0 {
        path.push(done.functions[done.nodes[node].function as usize].name.clone());
        node = done.nodes[node].parent as usize;
    }
    path.reverse();
    path
}
