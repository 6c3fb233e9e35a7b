//! TLS and passwords: which servers the store trusts, and which secrets it never shows.

use windlass_postgres::{Location, OpenError, Options, PostgresStore};
use windlass_scratch::{Cluster, ClusterOptions};

use crate::place::tasks;
use windlass_core::Store;

const PASSWORD: &str = "s3cret/&?#@";

fn secure() -> Cluster {
    Cluster::start(&ClusterOptions::new().without_fsync().with_tls().password(PASSWORD)).unwrap()
}

async fn open(url: &str) -> Result<(), String> {
    let location = Location::parse(url).map_err(|error| format!("{error} {error:?}"))?;
    let options = Options { migrate: true, ..Options::default() };
    let told = |error: OpenError| format!("{error} {error:?}");
    let store = PostgresStore::open(&location, options).await.map_err(told)?;
    store.enqueue(tasks("a", 1)).await.unwrap();
    Ok(())
}

/// Opens a store that must be refused, and answers why.
async fn refused(url: &str, why: &str) {
    let error = open(url).await.unwrap_err();
    assert!(error.contains(why), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

#[tokio::test]
async fn a_server_is_believed_as_far_as_the_address_says() {
    let (cluster, other) =
        (secure(), Cluster::start(&ClusterOptions::new().without_fsync().with_tls()).unwrap());
    let (right, wrong) = (cluster.ca_path().unwrap(), other.ca_path().unwrap());
    let (right, wrong) = (right.display(), wrong.display());
    let url = cluster.url();
    let misnamed = url.replace("@127.0.0.1:", "@elsewhere.example:") + "?hostaddr=127.0.0.1";
    open(&cluster.tls_url().unwrap()).await.unwrap();
    open(&format!("{url}?sslrootcert={right}&sslmode=verify-full")).await.unwrap();
    open(&format!("{url}?sslmode=verify-ca&sslrootcert={right}")).await.unwrap();
    open(&format!("{url}?sslmode=require")).await.unwrap();
    open(&format!("{misnamed}&sslmode=verify-ca&sslrootcert={right}")).await.unwrap();
    open(&format!("{misnamed}&sslmode=require")).await.unwrap();
    refused(&format!("{misnamed}&sslmode=verify-full&sslrootcert={right}"), "elsewhere.example").await;
    refused(&format!("{url}?sslmode=verify-full&sslrootcert={wrong}"), "invalid peer certificate").await;
    refused(&format!("{url}?sslmode=verify-ca&sslrootcert={wrong}"), "invalid peer certificate").await;
    // As in libpq: an address that names an authority asks for verification.
    open(&format!("{misnamed}&sslmode=require&sslrootcert={right}")).await.unwrap();
    refused(&format!("{url}?sslmode=require&sslrootcert={wrong}"), "invalid peer certificate").await;
    refused(&format!("{url}?sslrootcert={wrong}&sslmode=require"), "invalid peer certificate").await;
    // The authorities of the machine do not know this one.
    refused(&format!("{url}?sslmode=verify-full"), "").await;
    refused(&format!("{url}?sslmode=verify-full&sslrootcert=/nowhere/ca.crt"), "/nowhere/ca.crt").await;
}

#[tokio::test]
async fn every_connection_is_secure_if_the_address_says_so() {
    let cluster = secure();
    let location = Location::parse(&cluster.tls_url().unwrap()).unwrap();
    let options = Options { migrate: true, ..Options::default() };
    let store = PostgresStore::open(&location, options).await.unwrap();
    crate::wait::until("it listens", async || windlass_core::Source::hears_of_new_tasks(&*store)).await;
    store.enqueue(tasks("a", 1)).await.unwrap();
    let by = |secure: &str| {
        let text = format!(
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
             WHERE application_name LIKE 'windlass %' AND {secure}"
        );
        cluster.psql(&text).unwrap()
    };
    assert!(by("ssl").parse::<u32>().unwrap() >= 2, "clients and the listener");
    assert_eq!(by("NOT ssl"), "0");
}

#[tokio::test]
async fn a_password_is_given_and_never_told() {
    let cluster = secure();
    open(&cluster.url()).await.unwrap();
    let wrong = cluster.url().replace("s3cret", "s3cretly");
    refused(&wrong, "password authentication failed").await;
    refused(&cluster.url().replace("windlass:", "stranger:"), "stranger").await;
    for broken in [
        "postgres://me:s3cret@host:port/db",
        "postgres://me:s3cret@host:99999999/db",
        "postgres://me:s3cret%zz@host/db",
        "postgres://me:s3cret?x@host/db",
        "postgres://me:s3cret#x@host/db",
        "postgres://me:x@s3cret@127.0.0.1:1/db",
        "postgres://host/db?user=me&password=s3cret&nonsense=1",
        "postgres://host/db?user=me&nonsense=1&password=x@s3cret",
        "postgres://me:s3cret@host/db?sslmode=sometimes",
        "postgres://me:s3cret@host/db?sslrootcert=%zz&sslmode=verify-full",
        "mysql://me:s3cret@host/db",
        "me:s3cret@host/db",
    ] {
        let error = open(broken).await.unwrap_err();
        assert!(!error.contains("s3cret"), "{broken}: {error}");
    }
    let store = Location::parse(&cluster.url()).unwrap();
    assert!(!format!("{store} {store:?}").contains("s3cret"));
}
