//! Pages of runs and sweeps.
