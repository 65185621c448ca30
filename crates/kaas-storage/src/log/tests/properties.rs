//! Rules over all histories: random appends, reads, rolls, deletions, faults, restarts and power cuts against what a
//! log is in a few lines.

use proptest::prelude::*;

use super::*;

/// What a broker and its machine go through. Numbers pick among what is there.
#[derive(Clone, Debug)]
enum Event {
    Append { records: usize },
    Flush,
    Checkpoint,
    Maintain,
    DeleteRecords { percent: i64 },
    Restart,
    PowerCut { seed: u64 },
    Fault { nth: u64, fault: Fault },
}

fn fault() -> impl Strategy<Value = Event> {
    let kinds = prop_oneof![
        Just(Fault::Io),
        Just(Fault::LostAnswer),
        Just(Fault::Full),
        Just(Fault::ShortWrite),
        Just(Fault::FailedSync),
        Just(Fault::FailedDirSync)
    ];
    (1u64..6, kinds).prop_map(|(nth, fault)| Event::Fault { nth, fault })
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => (1usize..4).prop_map(|records| Event::Append { records }),
        4 => Just(Event::Flush),
        1 => Just(Event::Checkpoint),
        1 => Just(Event::Maintain),
        1 => (0i64..=100).prop_map(|percent| Event::DeleteRecords { percent }),
        1 => Just(Event::Restart),
        2 => any::<u64>().prop_map(|seed| Event::PowerCut { seed }),
        2 => fault(),
    ];
    prop::collection::vec(event, 1..40)
}

/// A machine whose disk fails and whose power is cut, and the broker on it.
struct Machine {
    memory: MemoryVolume,
    faulty: FaultyVolume,
    broker: Broker,
    config: LogConfig,
    log: Arc<Log>,
}

impl Machine {
    fn new(config: LogConfig) -> Machine {
        let memory = MemoryVolume::new();
        let faulty = FaultyVolume::new(Arc::new(memory.clone()));
        let broker = Broker::new(faulty.clone());
        let log = broker.log_with(config.clone());
        Machine {
            memory,
            faulty,
            broker,
            config,
            log,
        }
    }

    fn restart(&mut self) {
        self.faulty.heal();
        self.broker = self.broker.restart();
        self.log = self.broker.log_with(self.config.clone());
    }

    fn cut_power(&mut self, seed: u64) {
        self.memory = self.memory.power_cut(seed);
        self.faulty = FaultyVolume::new(Arc::new(self.memory.clone()));
        let old = self.broker.name();
        let volume: Arc<dyn Volume> = Arc::new(self.faulty.clone());
        fence(&*volume, old).unwrap();
        self.broker = Broker::on(volume, self.broker.epoch + 1);
        self.log = self.broker.log_with(self.config.clone());
    }
}

/// The log as a list. What was acknowledged is `visible`; what a failed write or sync may have left behind, and a
/// later owner may find, is in `others`.
#[derive(Default)]
struct Model {
    records: Vec<String>,
    visible: usize,
    start: usize,
    others: Vec<Vec<String>>,
    next: usize,
}

impl Model {
    fn fresh(&mut self, count: usize) -> Vec<String> {
        (0..count)
            .map(|_| {
                self.next += 1;
                self.next.to_string()
            })
            .collect()
    }

    /// The log as its next owner finds it must begin with what was acknowledged and be one of the possible histories,
    /// cut anywhere.
    fn recovered(&mut self, log: &Log) {
        let offsets = log.offsets().unwrap();
        assert_eq!(offsets.high_watermark, offsets.end);
        assert!(
            offsets.end as usize >= self.visible,
            "{} acknowledged, {} left",
            self.visible,
            offsets.end
        );
        assert!(
            offsets.start as usize >= self.start,
            "deleted records came back"
        );
        let found = read_from(log, offsets.start, Isolation::ReadUncommitted);
        let end = offsets.end as usize;
        let acknowledged = self.records[..self.visible].to_vec();
        let fits = |history: &Vec<String>| {
            history.starts_with(&acknowledged)
                && end <= history.len()
                && found == numbered_from(offsets.start as usize, &history[..end])
        };
        self.others.push(std::mem::take(&mut self.records));
        let history = self.others.iter().find(|history| fits(history));
        let history = history.unwrap_or_else(|| panic!("{found:?} is none of {:?}", self.others));
        self.records = history[..end].to_vec();
        self.visible = end;
        self.start = offsets.start as usize;
        self.others.clear();
    }
}

fn numbered_from(start: usize, records: &[String]) -> Vec<(i64, String)> {
    records
        .iter()
        .enumerate()
        .skip(start)
        .map(|(at, value)| (at as i64, value.clone()))
        .collect()
}

fn as_strs(values: &[String]) -> Vec<&str> {
    values.iter().map(String::as_str).collect()
}

fn small_segments() -> LogConfig {
    LogConfig {
        segment_bytes: 400,
        retention_ms: None,
        ..LogConfig::default()
    }
}

fn run_against_model(events: Vec<Event>) {
    let mut machine = Machine::new(small_segments());
    let mut model = Model::default();
    for event in events {
        match event {
            Event::Append { records } => {
                let values = model.fresh(records);
                match machine.log.append(batch(&as_strs(&values)), AT_NOW) {
                    Ok(appended) => {
                        let end = appended.base_offset as usize;
                        assert!(end >= model.visible);
                        assert_eq!(end, model.records.len());
                        model.records.extend(values);
                    }
                    Err(_) => {
                        model
                            .others
                            .push(model.records.iter().cloned().chain(values).collect());
                    }
                }
            }
            Event::Flush => {
                let flushed = machine.log.flush();
                if flushed.is_ok() {
                    model.visible = model.records.len();
                }
            }
            // A failure of these changes nothing that counts.
            Event::Checkpoint => drop(machine.log.checkpoint()),
            Event::Maintain => drop(machine.log.maintain(NOW)),
            Event::DeleteRecords { percent } => {
                let offset = model.visible as i64 * percent / 100;
                if let Ok(start) = machine.log.delete_records_before(offset) {
                    assert!(start >= offset);
                    model.start = model.start.max(start as usize);
                }
            }
            Event::Restart => {
                machine.restart();
                model.recovered(&machine.log);
            }
            Event::PowerCut { seed } => {
                machine.cut_power(seed);
                model.recovered(&machine.log);
            }
            Event::Fault { nth, fault } => machine.faulty.fail_at(nth, fault),
        }
        if machine.broker.session.is_fenced() {
            machine.restart();
            model.recovered(&machine.log);
        }
        let Some(offsets) = machine.log.known_offsets() else {
            continue;
        };
        // A sync that failed took back what was not acknowledged; a roll may have acknowledged.
        let end = offsets.end as usize;
        if end < model.records.len() {
            let before = model.records.clone();
            model.records.truncate(end);
            model.others.push(before);
        }
        assert!(offsets.high_watermark as usize >= model.visible);
        model.visible = offsets.high_watermark as usize;
        if offsets.start as usize > model.start {
            model.start = offsets.start as usize;
        }
        assert_eq!(end, model.records.len());
    }
    machine.restart();
    model.recovered(&machine.log);
    machine.log.append(batch(&["last"]), AT_NOW).unwrap();
    machine.log.flush().unwrap();
    model.records.push("last".to_owned());
    assert_eq!(
        read_from(&machine.log, model.start as i64, Isolation::ReadUncommitted),
        numbered_from(model.start, &model.records)
    );
}

/// A producer with several batches in flight repeats, in order, what was not acknowledged, as clients do.
fn run_idempotent_producer(events: Vec<Event>) {
    const IN_FLIGHT: i32 = 3;
    let mut machine = Machine::new(small_segments());
    let mut acknowledged = 0;
    let send = |machine: &Machine, sequence: i32| {
        let value = sequence.to_string();
        let records = BatchBuilder::new(0)
            .producer(9, 0, sequence)
            .record(NOW, None, Some(value.as_bytes()))
            .build();
        machine.log.append(records, AT_NOW)
    };
    let mut round = |machine: &mut Machine| {
        let sent: Vec<Appended> = (acknowledged..acknowledged + IN_FLIGHT)
            .map_while(|sequence| send(machine, sequence).ok())
            .collect();
        // What counts in spite of a failed flush is acknowledged by the roll that made it durable.
        let _ = machine.log.flush();
        acknowledged += sent
            .iter()
            .take_while(|appended| machine.log.counts(appended.flush_point))
            .count() as i32;
        acknowledged
    };
    for event in events {
        match event {
            Event::Append { .. } | Event::Flush => {
                round(&mut machine);
            }
            Event::Checkpoint => drop(machine.log.checkpoint()),
            Event::Maintain | Event::DeleteRecords { .. } => drop(machine.log.maintain(NOW)),
            Event::Restart => machine.restart(),
            Event::PowerCut { seed } => machine.cut_power(seed),
            Event::Fault { nth, fault } => machine.faulty.fail_at(nth, fault),
        }
        if machine.broker.session.is_fenced() {
            machine.restart();
        }
    }
    machine.restart();
    let acknowledged = round(&mut machine);
    let expected: Vec<(i64, String)> = (0..acknowledged)
        .map(|at| (i64::from(at), at.to_string()))
        .collect();
    assert_eq!(
        read_from(&machine.log, 0, Isolation::ReadUncommitted),
        expected
    );
}

/// What a compacted log must hold: under each offset what was appended there, and the latest acknowledged record of
/// each key.
fn run_compaction(events: Vec<Event>) {
    let config = LogConfig {
        cleanup_policy: CleanupPolicy {
            delete: false,
            compact: true,
        },
        min_cleanable_dirty_ratio: 0.0,
        ..small_segments()
    };
    let mut machine = Machine::new(config);
    let mut appended: Vec<(usize, String)> = Vec::new();
    let mut visible = 0;
    let mut next = 0;
    for event in events {
        match event {
            Event::Append { records } => {
                let pairs: Vec<(usize, String)> = (0..records)
                    .map(|_| {
                        next += 1;
                        (next * 7 % 5, next.to_string())
                    })
                    .collect();
                let builder = pairs
                    .iter()
                    .fold(BatchBuilder::new(0), |builder, (key, value)| {
                        builder.record(NOW, Some(&[*key as u8]), Some(value.as_bytes()))
                    });
                // What a failed append left behind may come to light, under an offset that another record got meanwhile
                // if it was never visible. So only what is visible is compared.
                if let Ok(done) = machine.log.append(builder.build(), AT_NOW) {
                    appended.truncate(done.base_offset as usize);
                    appended.extend(pairs);
                }
            }
            Event::Flush | Event::DeleteRecords { .. } => drop(machine.log.flush()),
            Event::Checkpoint => drop(machine.log.checkpoint()),
            Event::Maintain => drop(machine.log.compact(NOW)),
            Event::Restart => machine.restart(),
            Event::PowerCut { seed } => machine.cut_power(seed),
            Event::Fault { nth, fault } => machine.faulty.fail_at(nth, fault),
        }
        if machine.broker.session.is_fenced() {
            machine.restart();
        }
        let Ok(offsets) = machine.log.offsets() else {
            continue;
        };
        let end = offsets.high_watermark as usize;
        assert!(end >= visible, "{visible} acknowledged, {end} left");
        machine.faulty.heal();
        let found = read_from(&machine.log, 0, Isolation::ReadUncommitted);
        for (offset, value) in &found {
            match appended.get(*offset as usize) {
                Some((_, appended)) if (*offset as usize) < visible => assert_eq!(value, appended),
                _ => {
                    // It was not acknowledged to us, and is visible now.
                    let number: usize = value.parse().unwrap();
                    appended.resize(appended.len().max(*offset as usize + 1), (0, String::new()));
                    appended[*offset as usize] = (number * 7 % 5, value.clone());
                }
            }
        }
        for (key, (offset, value)) in latest(&appended[..visible]) {
            let is_there = found.contains(&(offset, value.clone()));
            let is_superseded = found
                .iter()
                .any(|(other, _)| *other > offset && key_at(&appended, *other, end) == key);
            assert!(
                is_there || is_superseded,
                "the latest record of key {key}, {value} at {offset}, is gone"
            );
        }
        visible = end;
    }
}

fn key_at(appended: &[(usize, String)], offset: i64, end: usize) -> usize {
    appended[..end.min(appended.len())]
        .get(offset as usize)
        .map_or(0, |(key, _)| *key)
}

fn latest(appended: &[(usize, String)]) -> std::collections::BTreeMap<usize, (i64, String)> {
    let places = appended
        .iter()
        .enumerate()
        .map(|(at, (key, value))| (*key, (at as i64, value.clone())));
    places.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nothing_acknowledged_is_lost_reordered_or_resurrected(events in events()) {
        run_against_model(events);
    }

    #[test]
    fn an_idempotent_producer_that_retries_is_stored_exactly_once_and_in_order(events in events()) {
        run_idempotent_producer(events);
    }

    #[test]
    fn compaction_never_takes_the_latest_record_of_a_key(events in events()) {
        run_compaction(events);
    }

    #[test]
    fn of_a_torn_or_damaged_last_segment_the_valid_prefix_counts(
        sizes in prop::collection::vec(1usize..40, 1..12),
        cut in 0.0f64..1.0,
        garbage in prop::collection::vec(any::<u8>(), 0..80),
        flip in prop::option::of(0.0f64..1.0),
    ) {
        let broker = Broker::new(MemoryVolume::new());
        let log = broker.log();
        let mut ends = vec![0];
        for size in &sizes {
            log.append(batch(&[&"x".repeat(*size)]), AT_NOW).unwrap();
            ends.push(log.size() as usize);
        }
        let path = format!("{DIR}/{}", broker.files()[0]);
        let mut bytes = broker.volume.read(&path).unwrap();
        let cut = (bytes.len() as f64 * cut) as usize;
        bytes.truncate(cut);
        let mut valid = cut;
        if let Some(flip) = flip && cut > 0 {
            let at = (cut as f64 * flip) as usize;
            bytes[at] ^= 0x10;
            valid = at;
        }
        // Not what was lost: every batch ends with a 0.
        bytes.extend(garbage.first().map(|_| 0xff));
        bytes.extend(&garbage);
        broker.volume.remove_file(&path).unwrap();
        broker.volume.create(&path).unwrap().write_at(&bytes, 0).unwrap();
        let whole = ends.iter().filter(|end| **end <= valid).count() as i64 - 1;
        let broker = broker.restart();
        let log = broker.log();
        // The leader epoch is not covered by the crc, nor, in effect, is a base offset that still rises.
        let uncovered = flip.is_some() && valid < cut && {
            let within = valid - ends[whole as usize];
            within < 16
        };
        let end = log.end_offset().unwrap();
        if uncovered {
            prop_assert!(end >= whole);
        } else {
            prop_assert_eq!(end, whole);
        }
        prop_assert_eq!(log.append(batch(&["next"]), AT_NOW).unwrap().base_offset, end);
    }

    #[test]
    fn any_read_gives_whole_batches_from_the_one_asked_for(
        batches in prop::collection::vec((1usize..5, 0usize..9_000), 1..40),
        segment_bytes in 50_000u64..200_000,
        reads in prop::collection::vec((0.0f64..1.0, 1usize..120_000), 1..20),
        reopen in any::<bool>(),
    ) {
        let mut broker = Broker::new(MemoryVolume::new());
        let config = LogConfig { segment_bytes, ..LogConfig::default() };
        let mut log = broker.log_with(config.clone());
        let mut bounds = vec![];
        for (records, size) in &batches {
            let value = "v".repeat(*size);
            let records = batch(&vec![value.as_str(); *records]);
            let len = records.len();
            let appended = log.append(records, AT_NOW).unwrap();
            bounds.push((appended.base_offset, appended.last_offset, len));
        }
        log.flush().unwrap();
        if reopen {
            broker = broker.restart();
            log = broker.log_with(config);
        }
        let end = log.end_offset().unwrap();
        for (at, max_bytes) in reads {
            let offset = (end as f64 * at) as i64;
            let options = ReadOptions { max_bytes, ..EVERYTHING };
            let slice = log.read(offset, options).unwrap().slice.unwrap();
            let first = bounds.iter().position(|(_, last, _)| *last >= offset).unwrap();
            let bytes = bytes_of(&slice);
            let mut given = 0;
            for (got, (base, last, len)) in kaas_wire::batch::batches(&bytes).zip(&bounds[first..]) {
                let got = got.unwrap();
                prop_assert_eq!((got.header.base_offset, got.header.last_offset(), got.bytes.len()), (*base, *last, *len));
                prop_assert_eq!(got.verify_crc(), Ok(()));
                given += 1;
            }
            prop_assert!(given == 1 || slice.len <= max_bytes);
            prop_assert_eq!(slice.next_offset, bounds[first + given - 1].1 + 1);
            prop_assert_eq!(bytes.len(), bounds[first..first + given].iter().map(|(_, _, len)| len).sum::<usize>());
        }
    }

    #[test]
    fn a_lookup_by_time_gives_what_a_walk_over_all_records_gives(
        batches in prop::collection::vec((prop::collection::vec(0i64..200, 1..5), 0usize..12_000), 1..20),
        lookups in prop::collection::vec(0i64..210, 1..10),
        start in 0.0f64..1.0,
        reopen in any::<bool>(),
    ) {
        let broker = Broker::new(MemoryVolume::new());
        let config = LogConfig { segment_bytes: 100_000, ..LogConfig::default() };
        let mut log = broker.log_with(config.clone());
        let mut all = vec![];
        for (timestamps, size) in &batches {
            let value = vec![b'v'; *size];
            let builder = timestamps
                .iter()
                .fold(BatchBuilder::new(0), |builder, timestamp| builder.record(*timestamp, None, Some(&value)));
            log.append(builder.build(), AT_NOW).unwrap();
            all.extend(timestamps);
        }
        log.flush().unwrap();
        let start = log.delete_records_before((all.len() as f64 * start) as i64).unwrap();
        if reopen {
            log = broker.restart().log_with(config);
        }
        for timestamp in lookups {
            let expected = (start as usize..all.len()).find(|at| all[*at] >= timestamp).map(|at| (at as i64, all[at]));
            let found = log.offset_for_timestamp(timestamp, Isolation::ReadUncommitted).unwrap();
            prop_assert_eq!(found.map(|it| (it.offset, it.timestamp_ms)), expected);
        }
    }
}
