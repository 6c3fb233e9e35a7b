//! S2: what calls change, not only how they are answered. Every kind of caller makes every gRPC and HTTP
//! call, with arguments that name things of other callers. The test compares the store before and after. A
//! refused call must change nothing; an allowed call may change only what its scope allows.

mod dump;
pub mod grpc;
mod hostile;
mod http;
mod scene;

use dump::Dump;
use scene::{Bearer, Scene};
