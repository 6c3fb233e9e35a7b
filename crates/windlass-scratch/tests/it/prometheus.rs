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
fn a_configuration_that_makes_no_sense_is_told_in_its_own_words() {
    let error = Prometheus::start("scrape_config: []\n", &[]).unwrap_err();
    assert!(matches!(&error, Error::Start { reason, .. } if reason.contains("scrape_config")), "{error}");
}
