//! expect: error[E0277]: `SendEmail` is not a Windlass task
//! expect: client.enqueue(SendEmail)

struct SendEmail;

pub fn enqueue(client: &windlass::Client) {
    let _ = client.enqueue(SendEmail);
}
