//! S2: what calls do, not only how they are answered. Every call of gRPC and HTTP is made by every kind of caller with arguments that
//! name what belongs to others; the store is compared before and after. A call that is refused changes nothing, and one that is
//! allowed changes only what its scope may change.

mod dump;
pub mod grpc;
mod hostile;
mod http;
mod scene;

use dump::Dump;
use scene::{Bearer, Scene};
