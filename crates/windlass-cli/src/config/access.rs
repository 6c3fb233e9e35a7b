//! Settings about who may do what, part of the one table.

use super::setting::{Kind, Setting};

/// Whether callers must say who they are.
pub static AUTH: Setting = Setting::new(
    "auth",
    Kind::Choice(&["auto", "tokens", "off"]),
    "auto",
    "Who must show a token. `auto`: nobody on a loopback address, everybody on another one with TLS. `tokens`: everybody; set it if a proxy on this machine forwards requests of others. `off`: nobody.",
)
.flag("--auth");
/// Whether the server changes anything.
pub static READ_ONLY: Setting = Setting::new(
    "read_only",
    Kind::Choice(&["on", "off"]),
    "off",
    "With `on` nothing can be enqueued or changed through this server, whoever asks. Its own worker goes on.",
)
.flag("--read-only");
/// How often one token may call.
pub static RATE_LIMIT: Setting = Setting::new(
    "rate_limit",
    Kind::Count { min: 0, max: 1_000_000 },
    "5000",
    "Calls of one token each second, with as many at once; more are answered with 429. 0: no limit. Who needs no token is not counted.",
);
/// How many may be connected.
pub static CONNECTIONS_MAX: Setting = Setting::new(
    "connections_max",
    Kind::Count { min: 10, max: 1_000_000 },
    "1000",
    "Connections that a server holds at once; a further one is answered with 503. A remote worker takes two. Each needs a file descriptor: mind `ulimit -n`.",
);
/// Names that the server answers to.
pub static ALLOWED_HOSTS: Setting = Setting::new(
    "allowed_hosts",
    Kind::Hosts,
    "",
    "Names that clients may call this server by, beside its address and localhost: `[\"windlass.internal\"]`. A request with another Host is refused.",
);
/// The server's certificate.
pub static TLS_CERT: Setting = Setting::new(
    "tls_cert",
    Kind::Text,
    "",
    "The server's certificate with those between it and its authority, a file in PEM. Read again when it changes, and on SIGHUP.",
)
.flag("--tls-cert");
/// Its key.
pub static TLS_KEY: Setting =
    Setting::new("tls_key", Kind::Text, "", "The key of `tls_cert`, a file in PEM.").flag("--tls-key");
/// Authorities of client certificates.
pub static TLS_CLIENT_CA: Setting = Setting::new(
    "tls_client_ca",
    Kind::Text,
    "",
    "Authorities of client certificates, a file in PEM. A caller with a certificate of theirs needs no token.",
)
.flag("--tls-client-ca");
/// What a client certificate allows.
pub static TLS_CLIENT_SCOPES: Setting = Setting::new(
    "tls_client_scopes",
    Kind::Text,
    "enqueue,work,read",
    "What a client certificate lets its bearer do: some of enqueue, work, read, admin.",
);
/// The file with the client's token.
pub static TOKEN_FILE: Setting = Setting::new(
    "token_file",
    Kind::Text,
    "",
    "The file with the token that commands show to a server. WINDLASS_TOKEN holds the token itself; --token-file wins over it.",
)
.flag("--token-file");
/// Authorities of the server's certificate.
pub static CA: Setting = Setting::new(
    "ca",
    Kind::Text,
    "",
    "The authorities that commands believe about a server with https://, a file in PEM; without it those of the system.",
)
.flag("--ca");
