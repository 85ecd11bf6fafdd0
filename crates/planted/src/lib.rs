//! Faults that can be planted in the gateway, to see that its tests find them.
//!
//! The code asks [`planted`] where a fault would be made. Without the feature `on` that is the constant `false`, so
//! that nothing of it is compiled into a program. With it, the fault that the thread has chosen by [`plant`] is made.

macro_rules! faults {
    ($($variant:ident $text:literal)*) => {
        /// A fault that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $(#[doc = $text] $variant,)*
        }

        impl Fault {
            /// Every fault, in the order of the list.
            pub const ALL: &[Fault] = &[$(Fault::$variant),*];

            /// What is wrong with it planted, in one line.
            pub fn explanation(self) -> &'static str {
                match self { $(Fault::$variant => $text),* }
            }
        }
    };
}

faults! {
    SkippedSync "a state file is renamed before its bytes are durable"
    SkippedDirectorySync "a state file's new name is not made durable"
}

#[cfg(feature = "on")]
mod chosen {
    use std::cell::Cell;

    use super::Fault;

    thread_local! {
        static CHOSEN: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Plants a fault on this thread, or none.
    pub fn plant(fault: Option<Fault>) {
        CHOSEN.set(fault);
    }

    /// Whether this fault is planted on this thread.
    pub fn planted(fault: Fault) -> bool {
        CHOSEN.get() == Some(fault)
    }
}

#[cfg(feature = "on")]
pub use chosen::{plant, planted};

/// Whether this fault is planted: never.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub const fn planted(_fault: Fault) -> bool {
    false
}
