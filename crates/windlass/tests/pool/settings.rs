//! How large a pool is.

use windlass::{
    Pool,
    pool::{PoolBuilder, PoolError},
};

#[tokio::test]
async fn a_pool_has_four_slots_per_cpu_and_a_buffer_of_100() {
    let gauges = Pool::builder().build().unwrap().gauges();
    let cpus = std::thread::available_parallelism().unwrap().get();
    assert_eq!((gauges.size, gauges.buffer), (cpus * 4, 100));
}

#[tokio::test]
async fn a_size_of_zero_is_refused_with_the_name_of_the_setting() {
    let no_slots = Pool::builder().size(0).build().unwrap_err();
    assert!(no_slots.to_string().contains("WORKER_POOL_SIZE"), "{no_slots}");
    let no_buffer = Pool::builder().buffer(0).build().unwrap_err();
    assert!(no_buffer.to_string().contains("WORKER_BUFFER_SIZE"), "{no_buffer}");
}

#[tokio::test]
async fn the_environment_sets_both_sizes() {
    let vars = |name: &str| match name {
        "WORKER_POOL_SIZE" => Some("3".to_owned()),
        "WORKER_BUFFER_SIZE" => Some(" 7 ".to_owned()),
        _ => None,
    };
    let gauges = PoolBuilder::from_vars(vars).unwrap().build().unwrap().gauges();
    assert_eq!((gauges.size, gauges.buffer), (3, 7));
}

#[tokio::test]
async fn our_own_name_wins_over_the_documents_name() {
    let vars = |name: &str| match name {
        "WORKER_POOL_SIZE" => Some("3".to_owned()),
        "WINDLASS_POOL_SIZE" => Some("5".to_owned()),
        _ => None,
    };
    assert_eq!(PoolBuilder::from_vars(vars).unwrap().build().unwrap().gauges().size, 5);
}

#[test]
fn a_setting_that_is_not_a_number_is_refused_with_its_name() {
    for nonsense in ["many", "-1", "", "1.5"] {
        let vars = |name: &str| (name == "WORKER_BUFFER_SIZE").then(|| nonsense.to_owned());
        let error = PoolBuilder::from_vars(vars).unwrap_err();
        let expected = PoolError::NotANumber { setting: "WORKER_BUFFER_SIZE", value: nonsense.to_owned() };
        assert_eq!(error, expected);
    }
}

#[tokio::test]
async fn a_zero_in_the_environment_is_refused_with_its_name() {
    let vars = |name: &str| (name == "WINDLASS_POOL_SIZE").then(|| "0".to_owned());
    let error = PoolBuilder::from_vars(vars).unwrap().build().unwrap_err();
    assert!(error.to_string().contains("WINDLASS_POOL_SIZE"), "{error}");
}

#[test]
fn a_pool_outside_of_a_runtime_is_refused_with_a_remedy() {
    assert_eq!(Pool::builder().build().unwrap_err(), PoolError::NoRuntime);
}

#[tokio::test]
async fn slots_cost_nothing_until_they_are_used() {
    let pool = Pool::builder().size(100_000).build().unwrap();
    assert_eq!(pool.gauges().consumers, 0);
    for _ in 0..3 {
        pool.dispatch(async {}).unwrap().await.unwrap();
    }
    assert_eq!(pool.gauges().consumers, 1);
}
