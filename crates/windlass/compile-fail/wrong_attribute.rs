//! expect: error: unknown task attribute `retries`; known are kind, queue, max_attempts
//! expect: #[task(kind = "send_email", retries = 5)]
//! expect: error: "30 seconds" is not a length of time: write a whole number and ms, s, m, h or d, such as "30s"
//! expect: error: a length of time must be text with a unit: write "30s" for seconds

use windlass::Task;
use windlass::serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
#[task(kind = "send_email", retries = 5)]
struct SendEmail {
    to: String,
}

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
#[task(timeout = "30 seconds")]
struct SendLetter {
    to: String,
}

#[derive(Serialize, Deserialize, Task)]
#[serde(crate = "windlass::serde")]
#[task(timeout = 30)]
struct SendParcel {
    to: String,
}
