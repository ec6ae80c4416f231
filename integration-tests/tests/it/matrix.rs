//! Twelve cells of the fault matrix, once each. The whole of it is `just faults`.

use std::time::Duration;

use integration_tests::matrix::{Options, run, smoke};

/// Times are for the whole matrix to judge: here the machine may be busy with anything, and what is late has got stuck.
const STUCK: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn cluster_matrix_smoke() {
    let options = Options {
        rounds: 1,
        allowance: STUCK,
    };
    let report = run(&smoke(), options).await;
    println!("{}", report.markdown());
    let failed: Vec<_> = report
        .failed()
        .iter()
        .map(|cell| (&cell.id, &cell.verdict, &cell.runs))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
