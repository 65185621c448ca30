//! What an operator does and sees.

use std::time::Duration;

use kaas_tests::admin;
use kaas_tests::broker::Broker;
use kaas_tests::files;
use kaas_tests::member::{self, Member};
use kaas_tests::time::{SOON, eventually};
use kaas_tests::topic;
use kaas_wire::ErrorCode;
use kaas_wire::messages::api_versions::ApiVersionsRequest;

use crate::{kaas, quick};

#[test]
fn a_second_process_of_a_node_takes_over_and_the_first_says_so_and_stops() {
    let mut first = quick().start();
    let mut connection = first.connect();
    topic::create(&mut connection, "t", 1);
    let mut member = Member::new(&first, "g");
    member.enter_alone();
    assert_eq!(member.commit("t", 0, 41), ErrorCode::NONE);

    let second = quick().on_volume_of(&first).start();
    let ended = first.wait(SOON);
    assert_ne!(ended.status.code(), Some(0));
    let log = ended.log.text();
    assert!(
        log.contains("another process has taken over this node id"),
        "{log}"
    );
    assert!(log.contains("--node-id"), "it names the remedy: {log}");

    assert_eq!(member::committed(&mut second.connect(), "g", "t", 0), 41);
    member.connection = second.connect();
    assert_eq!(member.heartbeat(), ErrorCode::NONE, "the member carries on");
    assert_eq!(member.commit("t", 0, 42), ErrorCode::NONE);
}

#[test]
fn a_broker_that_was_frozen_during_a_takeover_acknowledges_nothing_after_it() {
    let mut first = quick().start();
    let mut connection = first.connect();
    topic::create(&mut connection, "t", 1);
    assert_eq!(
        member::simple_commit(&mut connection, "g", "t", 0, 1),
        ErrorCode::NONE
    );
    first.signal(rustix::process::Signal::STOP);
    let late_commit = connection.send(8, &member::simple_commit_request("g", "t", &[(0, 7)]));
    let late_produce = connection.send(
        12,
        &topic::produce_request("t", 0, topic::batch(&[b"late".to_vec()])),
    );

    let second = quick().on_volume_of(&first).start();
    let mut other = second.connect();
    assert_eq!(
        member::simple_commit(&mut other, "g", "t", 0, 2),
        ErrorCode::NONE
    );
    first.signal(rustix::process::Signal::CONT);
    if let Ok(answer) = connection.receive_within(late_commit, SOON) {
        assert_ne!(answer.topics[0].partitions[0].error_code, ErrorCode::NONE);
        if let Ok(answer) = connection.receive_within(late_produce, SOON) {
            let produced = &answer.responses[0].partition_responses[0];
            assert_ne!(produced.error_code, ErrorCode::NONE);
        }
    }
    assert_ne!(first.wait(SOON).status.code(), Some(0));
    assert_eq!(member::committed(&mut other, "g", "t", 0), 2);
    assert!(topic::read_all(&mut other, "t", 0).is_empty());
}

#[test]
fn a_second_process_on_a_port_in_use_fails_before_it_touches_the_volume() {
    let first = quick().start();
    topic::create(&mut first.connect(), "t", 1);
    first.signal(rustix::process::Signal::STOP);
    let before = files::tree(first.volume());
    let ended = quick()
        .on_volume_of(&first)
        .listen(first.address)
        .run_to_end();
    let after = files::tree(first.volume());
    first.signal(rustix::process::Signal::CONT);
    assert_ne!(ended.status.code(), Some(0));
    let log = ended.log.text();
    assert!(log.contains("cannot listen on"), "{log}");
    assert!(log.contains("--listen"), "it names the remedy: {log}");
    assert!(before == after, "the volume was touched");
}

#[test]
fn without_its_assignment_a_volume_with_state_is_refused() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    assert_eq!(
        member::simple_commit(&mut connection, "g", "t", 0, 1),
        ErrorCode::NONE
    );
    broker.stop();
    let assignment = broker.volume().join("__cluster/assignment.json");
    let text = files::read(&assignment).expect("the assignment is a file");
    files::remove(&assignment);

    let ended = quick().on_volume_of(&broker).run_to_end();
    assert_ne!(ended.status.code(), Some(0));
    let log = ended.log.text();
    assert!(log.contains("assignment.json"), "{log}");
    assert!(
        log.contains("restore it from a backup"),
        "it names the remedy: {log}"
    );

    files::write(&assignment, &text);
    broker.start_again();
    assert_eq!(member::committed(&mut broker.connect(), "g", "t", 0), 1);
}

#[test]
fn a_group_whose_file_is_torn_is_refused_and_the_others_are_served() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 1);
    for group in ["torn", "whole"] {
        assert_eq!(
            member::simple_commit(&mut connection, group, "t", 0, 3),
            ErrorCode::NONE
        );
    }
    assert_eq!(broker.stop().status.code(), Some(0));
    let file = broker
        .volume()
        .join("__cluster/__consumer_offsets/torn.json");
    let text = files::read(&file).expect("a stopped broker has written its files");
    files::write(&file, &text[..text.len() / 2]);

    broker.start_again();
    let mut connection = broker.connect();
    assert_eq!(member::committed(&mut connection, "whole", "t", 0), 3);
    let torn = member::fetch_offsets(&mut connection, "torn", Some(&[("t", &[0])]));
    let is_refused = !torn.error_code.is_ok()
        || torn.topics.iter().all(|topic| {
            topic
                .partitions
                .iter()
                .all(|partition| !partition.error_code.is_ok())
        });
    assert!(is_refused, "{torn:?}");
    let commit = member::simple_commit(&mut connection, "torn", "t", 0, 4);
    assert_ne!(commit, ErrorCode::NONE);
    let told = broker.log().wait_for("torn.json", SOON);
    assert!(told.is_some_and(|line| line.contains("ERROR")));
    let left = files::read(&file).expect("the file is left as it is");
    assert_eq!(left, &text[..text.len() / 2]);
    assert_eq!(
        member::simple_commit(&mut connection, "whole", "t", 0, 4),
        ErrorCode::NONE
    );
}

#[test]
fn an_unknown_key_is_an_error_that_suggests_the_nearest() {
    let ended = kaas().set("group.min.sesion.timeout.ms", 1).run_to_end();
    assert_eq!(ended.status.code(), Some(2));
    let log = ended.log.text();
    assert!(log.contains("group.min.sesion.timeout.ms"), "{log}");
    assert!(log.contains("group.min.session.timeout.ms"), "{log}");
}

#[test]
fn a_value_out_of_range_is_an_error_that_names_the_key() {
    let ended = kaas().set("group.max.size", 0).run_to_end();
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.log.text().contains("group.max.size"));
}

#[test]
fn keys_of_kafka_without_effect_cost_one_warning() {
    let broker = kaas()
        .set("default.replication.factor", 3)
        .set("controller.quorum.voters", "1@localhost:9093")
        .set("log.cleaner.threads", 2)
        .start();
    let warning = broker
        .log()
        .wait_for("no effect here", SOON)
        .expect("a warning");
    assert!(warning.contains("WARN"));
    for key in ["controller.quorum.voters", "log.cleaner.threads"] {
        assert!(warning.contains(key), "{warning}");
    }
    assert_eq!(broker.log().count("no effect here"), 1);
}

#[test]
fn the_admin_port_tells_health_metrics_and_assignment() {
    let broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 2);
    for _ in 0..3 {
        topic::produce(&mut connection, "t", 0, &[b"one".to_vec(), b"two".to_vec()]);
    }
    let mut member = Member::new(&broker, "g");
    member.enter_alone();
    assert_eq!(member.commit("t", 0, 4), ErrorCode::NONE);

    let port = broker.admin();
    assert_eq!(admin::get(port, "/healthz").status, 200);
    assert_eq!(admin::get(port, "/readyz").status, 200);
    assert_eq!(admin::get(port, "/nothing").status, 404);
    let assignment = admin::get(port, "/assignment");
    assert_eq!(assignment.status, 200);
    let assignment: serde_json::Value = serde_json::from_str(&assignment.body).expect("JSON");
    assert_eq!(assignment["brokers"][0]["id"], 0);
    assert_eq!(assignment["brokers"][0]["port"], broker.address.port());
    assert!(assignment["version"].is_number() && assignment["controller_epoch"].is_number());

    let page = eventually(SOON, "the lag is told", || {
        let page = admin::get(port, "/metrics");
        assert_eq!(page.status, 200);
        let lag = r#"kafka_consumergroup_lag{consumergroup="g",topic="t",partition="0"}"#;
        (admin::metric(&page.body, lag) == Some(2.0)).then_some(page.body)
    });
    for (name, value) in [
        (
            r#"kafka_consumergroup_current_offset{consumergroup="g",topic="t",partition="0"}"#,
            4.0,
        ),
        (r#"kafka_consumergroup_members{consumergroup="g"}"#, 1.0),
        (
            r#"kafka_topic_partition_current_offset{topic="t",partition="0"}"#,
            6.0,
        ),
        (r#"kafka_topic_partitions{topic="t"}"#, 2.0),
    ] {
        assert_eq!(admin::metric(&page, name), Some(value), "{name} in\n{page}");
    }
}

#[test]
fn a_broker_that_was_told_to_stop_starts_again_with_all_it_had() {
    let mut broker = quick().start();
    let mut connection = broker.connect();
    topic::create(&mut connection, "t", 2);
    topic::produce(&mut connection, "t", 1, &[b"kept".to_vec()]);
    let mut member = Member::new(&broker, "g");
    member.enter_alone();
    assert_eq!(member.commit("t", 1, 1), ErrorCode::NONE);
    let ended = broker.stop();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.log.text());
    // Files are written behind the journal and are current when the broker has stopped.
    let file = broker.volume().join("__cluster/__consumer_offsets/g.json");
    let document: serde_json::Value =
        serde_json::from_slice(&files::read(&file).expect("the file is there")).expect("JSON");
    assert_eq!(document["group_id"], "g");

    broker.start_again();
    member.connection = broker.connect();
    assert_eq!(member.heartbeat(), ErrorCode::NONE);
    assert_eq!(member::committed(&mut member.connection, "g", "t", 1), 1);
    let records = topic::read_all(&mut member.connection, "t", 1);
    assert_eq!(records, [(0, b"kept".to_vec())]);
}

#[test]
fn the_first_client_is_served_within_a_moment_of_the_start() {
    for _ in 0..5 {
        let broker: Broker = kaas().start();
        let mut connection = broker.connect();
        let sent = connection.send(0, &ApiVersionsRequest::default());
        assert!(
            connection
                .receive_within(sent, Duration::from_secs(1))
                .is_ok()
        );
    }
}
