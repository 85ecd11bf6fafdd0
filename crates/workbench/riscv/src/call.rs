//! The call tree to whose nodes cycles are attributed.

/// A function of the program, by its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its first address.
    pub start: u32,
    /// The address behind its last.
    pub end: u32,
}

/// A function called along one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The caller's node; the root is its own.
    pub parent: u32,
    /// The function's number.
    pub function: u32,
}

/// The node above all.
pub const ROOT: u32 = 0;

/// Nodes beyond it are taken for calls from the root: recursion in many shapes could make any number.
const NODES_MAX: usize = 4_096;

/// How control goes from one block to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Onwards, a branch or a jump.
    Jump,
    /// With a return address kept.
    Call,
    /// Back.
    Return,
}

/// The tree, which grows while the program runs.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    /// Sorted by address; number 0 is everything that no symbol covers.
    functions: Vec<Function>,
    nodes: Vec<Node>,
    children: Vec<Vec<u32>>,
}

impl Calls {
    pub(crate) fn new(mut functions: Vec<Function>) -> Calls {
        functions.sort_by_key(|one| (one.start, one.end));
        functions.insert(0, Function { name: "(no symbol)".to_owned(), start: 0, end: 0 });
        Calls { functions, nodes: vec![Node { parent: ROOT, function: 0 }], children: vec![Vec::new()] }
    }

    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(crate) fn function_at(&self, pc: u32) -> u32 {
        let at = self.functions.partition_point(|one| one.start <= pc) - 1;
        if pc < self.functions[at].end { at as u32 } else { 0 }
    }

    /// The node of code at `target`, reached from `node`.
    pub(crate) fn step(&mut self, node: u32, way: Way, target: u32) -> u32 {
        let function = self.function_at(target);
        let here = self.nodes[node as usize];
        match way {
            // Recursion is folded: a function is in a path once.
            Way::Call => self.above(node, function).unwrap_or_else(|| self.child(node, function)),
            Way::Jump if here.function == function && node != ROOT => node,
            // A tail call takes its caller's place.
            Way::Jump => self.child(here.parent, function),
            Way::Return => match self.above(here.parent, function) {
                Some(caller) => caller,
                None if here.function == function => node,
                None => self.child(ROOT, function),
            },
        }
    }

    /// The nearest node of a function from `node` upwards.
    fn above(&self, mut node: u32, function: u32) -> Option<u32> {
        while node != ROOT {
            if self.nodes[node as usize].function == function {
                return Some(node);
            }
            node = self.nodes[node as usize].parent;
        }
        None
    }

    fn child(&mut self, parent: u32, function: u32) -> u32 {
        let parent = if self.nodes.len() < NODES_MAX { parent } else { ROOT };
        let known = self.children[parent as usize].iter().copied();
        if let Some(child) = known.into_iter().find(|&one| self.nodes[one as usize].function == function) {
            return child;
        }
        let child = self.nodes.len() as u32;
        self.nodes.push(Node { parent, function });
        self.children.push(Vec::new());
        self.children[parent as usize].push(child);
        child
    }
}
