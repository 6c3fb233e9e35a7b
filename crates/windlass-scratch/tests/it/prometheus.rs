//! A private Prometheus.

use std::net::TcpStream;

use windlass_scratch::{Error, Prometheus};

#[test]
fn it_answers_until_it_is_dropped() {
    let prometheus = Prometheus::start("scrape_configs: []\n", &[]).unwrap();
    let address = prometheus.url().replace("http://", "");
    assert!(TcpStream::connect(&address).is_ok());
    drop(prometheus);
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn a_wrong_configuration_fails_with_prometheus_own_message() {
    let error = Prometheus::start("scrape_config: []\n", &[]).unwrap_err();
    assert!(matches!(&error, Error::Start { reason, .. } if reason.contains("scrape_config")), "{error}");
}
