//! Groups as their clients know them. Each test is a fault that was seen in some broker; the letter and number name the
//! report.

mod admin;
mod membership;
mod names;
mod offsets;
mod statics;
