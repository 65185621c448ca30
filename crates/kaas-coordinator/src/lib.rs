//! The pure core of group coordination: no clock, no file, no task, no randomness.
