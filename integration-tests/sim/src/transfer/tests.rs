//! Tests under paused time, by what they look at.

mod faults;
mod members;
mod pins;
mod reads;
mod side;
mod storm;
