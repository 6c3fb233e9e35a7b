//! Settings about which callers may do what; they are part of the one table.

use super::setting::{Kind, Setting};

/// Whether callers must show a token.
pub static AUTH: Setting = Setting::new(
    "auth",
    Kind::Choice(&["auto", "tokens", "off"]),
    "auto",
    "Which callers must show a token. `auto`: none on a loopback address, all on another one with TLS. `tokens`: all; set it if a proxy on this machine forwards requests from other machines. `off`: none.",
)
.flag("--auth");
/// Whether the server refuses every change.
pub static READ_ONLY: Setting = Setting::new(
    "read_only",
    Kind::Choice(&["on", "off"]),
    "off",
    "With `on` this server refuses every enqueue and every change, for every token. Its own worker goes on.",
)
.flag("--read-only");
/// How many calls one token may make.
pub static RATE_LIMIT: Setting = Setting::new(
    "rate_limit",
    Kind::Count { min: 0, max: 1_000_000 },
    "5000",
    "Calls that one token may make each second, and at once; the server answers further ones with 429. 0: no limit. Calls of callers that need no token are not counted.",
);
/// How many connections a server holds.
pub static CONNECTIONS_MAX: Setting = Setting::new(
    "connections_max",
    Kind::Count { min: 10, max: 1_000_000 },
    "1000",
    "Connections that a server holds at once; it answers a further one with 503. A remote worker takes two. Each needs a file descriptor: raise `ulimit -n` if it is lower.",
);
/// Names that the server answers to.
pub static ALLOWED_HOSTS: Setting = Setting::new(
    "allowed_hosts",
    Kind::Hosts,
    "",
    "Names that clients may call this server by, beside its address and localhost: `[\"windlass.internal\"]`. A request with another Host is refused.",
);
/// Whether the server has pages.
pub static DASHBOARD: Setting = Setting::new(
    "dashboard",
    Kind::Choice(&["on", "off"]),
    "on",
    "Whether `windlass up` serves the pages of the dashboard. With `off` (or `false`, or `--no-dashboard`) there is the API alone.",
)
.flag("--no-dashboard");
/// Where the pages are, if not beside the API.
pub static DASHBOARD_LISTEN: Setting = Setting::new(
    "dashboard_listen",
    Kind::Address,
    "",
    "Where `windlass up` serves the pages, and the calls of the HTTP API that they make; without it on `listen`. With it there are no pages on `listen`, and no gRPC and no /metrics here. Any address but loopback needs TLS and tokens, or --insecure.",
)
.flag("--dashboard-listen");
/// The address at which browsers reach the server.
pub static PUBLIC_URL: Setting = Setting::new(
    "public_url",
    Kind::Url,
    "",
    "The address at which browsers reach this server, if a proxy stands before it: `https://ops.example.com/windlass`. The server answers to its host, serves the paths under its prefix, and takes changes from its pages only.",
)
.flag("--public-url");
/// The server's certificate.
pub static TLS_CERT: Setting = Setting::new(
    "tls_cert",
    Kind::Text,
    "",
    "The server's certificate and its intermediate certificates, a file in PEM. The server reads the file again when it changes, and on SIGHUP.",
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
    "Authorities of client certificates, a file in PEM. A caller with a certificate from one of them needs no token.",
)
.flag("--tls-client-ca");
/// What a client certificate allows.
pub static TLS_CLIENT_SCOPES: Setting = Setting::new(
    "tls_client_scopes",
    Kind::Text,
    "enqueue,work,read",
    "What callers with a client certificate may do: some of enqueue, work, read, admin.",
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
    "The certificate authorities that commands trust for a server with https://, a file in PEM; without it those of the system.",
)
.flag("--ca");
