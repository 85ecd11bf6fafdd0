//! One program for all of these tests: each program of its own would be linked by itself.

mod batches;
mod batches_by_hand;
mod by_hand;
mod classes;
mod cores;
mod fingerprints;
mod full_queues;
mod leaving;
mod needs;
mod optimum;
mod oracle;
mod order;
mod properties;
mod queueing;
mod scenario;
mod support;
mod traces;
