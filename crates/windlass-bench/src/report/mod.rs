//! Every figure beside its bar.

mod amqp_bars;
mod bars;
pub(crate) mod check;
mod dashboard_bars;
