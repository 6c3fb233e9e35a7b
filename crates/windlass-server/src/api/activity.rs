//! The last calls that changed something.

use serde::{Deserialize, Serialize};
use windlass_core::{CallRecord, Timestamp};

/// A call that changed something, without its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// Rises with each call.
    pub id: u64,
    /// When it was answered.
    pub at: Timestamp,
    /// Who called.
    pub who: String,
    /// The call: method and route, or service and method of gRPC.
    pub call: String,
    /// What it was about: the path, or the names and ids in a message.
    pub about: String,
    /// `done`, or `failed` if the server does not know whether it took effect.
    pub result: String,
}

impl From<CallRecord> for CallView {
    fn from(call: CallRecord) -> Self {
        let CallRecord { id, at, who, call, about, result } = call;
        Self { id, at, who, call, about, result }
    }
}

/// One page of the last calls that changed something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The calls, newest first.
    pub calls: Vec<CallView>,
    /// Ask with this as `after` for older ones; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
