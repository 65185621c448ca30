//! Random histories of two brokers that share a volume: commits, deletions, files, trims, failed calls, fences, absorbed
//! journals, planned moves, zombies and power cuts, by the rules of the design's journal section. After each, what a key is found to
//! be must be what was last acknowledged, or something submitted later. Every rule has a switch, and with it off the
//! histories must find a loss or a resurrection.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::layout::GROUPS;
use crate::volume::memory::Dice;

const KEYS: [&str; 3] = ["a", "b", "c"];
const BROKERS: usize = 2;
const SEGMENT: u64 = 700;
const LIMIT: u64 = 3 * SEGMENT;
const LENGTH: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    FenceBeforeGranting,
    AbsorbBeforeServing,
    CarryOnBeforeTrimming,
    CarryRemovedWhileAJournalIsNamed,
    ReleaseWhatMoves,
    ReloadWithTheOwnJournal,
    RemoveDurablyBeforeTheFile,
}

#[derive(Clone, Copy)]
enum Operation {
    Commit,
    Remove,
    Publish,
    Evict,
    Trim,
    Move,
    EndJournals,
    Fault,
    Absorb,
    Kill,
    Freeze,
    PowerCut,
    ZombieActs,
}

const OPERATIONS: [(Operation, usize); 13] = [
    (Operation::Commit, 30),
    (Operation::Remove, 8),
    (Operation::Publish, 15),
    (Operation::Evict, 5),
    (Operation::Trim, 10),
    (Operation::Move, 6),
    (Operation::EndJournals, 5),
    (Operation::Fault, 6),
    (Operation::Absorb, 4),
    (Operation::Kill, 2),
    (Operation::Freeze, 2),
    (Operation::PowerCut, 1),
    (Operation::ZombieActs, 3),
];

/// What a key is: the change that made it so, and whether it exists since. Change 0 is "never there".
type Event = (u64, bool);

/// What may be found of a key.
struct Truth {
    acknowledged: Event,
    /// Submitted later, and neither acknowledged nor known to be void.
    possible: Vec<Event>,
    by_revision: BTreeMap<Revision, Event>,
}

#[derive(Clone, Copy)]
struct Memory {
    event: Event,
    revision: Revision,
    /// Nothing was recorded since it came into memory: the next record is a whole state.
    is_fresh: bool,
    is_file_current: bool,
}

struct Broker {
    volume: FaultyVolume,
    fixture: Fixture,
    memory: BTreeMap<usize, Memory>,
    /// Left memory because an append failed.
    failed: BTreeSet<usize>,
    /// Gained with journals named, and not absorbed yet.
    gained: BTreeSet<usize>,
    /// Records this session ever tried to write.
    records: u64,
}

struct World {
    dice: Dice,
    /// Some histories have much of one thing and nothing of another: that reaches further than the same mix every time.
    weights: [(Operation, usize); OPERATIONS.len()],
    without: Option<Rule>,
    disk: MemoryVolume,
    controller: Arc<Session>,
    brokers: Vec<Broker>,
    zombies: Vec<(Broker, Vec<usize>)>,
    sessions: u128,
    version: u64,
    named: Vec<JournalFile>,
    owners: [usize; KEYS.len()],
    truth: Vec<Truth>,
    events: u64,
}

/// Why an operation of a broker did not come about. Only `Violated` is wrong.
#[derive(Debug)]
enum Trouble {
    Failed,
    Fenced(usize),
    Violated(String),
}

type Outcome<T = ()> = Result<T, Trouble>;

fn file_path(key: usize) -> String {
    format!("{GROUPS}/{}.json", KEYS[key])
}

impl World {
    fn new(seed: u64, without: Option<Rule>) -> World {
        let disk = memory();
        let controller = controller(&disk, 1);
        let mut dice = Dice(seed);
        let weights =
            OPERATIONS.map(|(operation, weight)| (operation, weight * [0, 1, 1, 3][dice.below(4)]));
        let mut world = World {
            // Not all can have drawn nothing.
            weights: if weights.iter().all(|(_, weight)| *weight == 0) {
                OPERATIONS
            } else {
                weights
            },
            dice,
            without,
            disk,
            controller,
            brokers: Vec::new(),
            zombies: Vec::new(),
            sessions: 1,
            version: 1,
            named: Vec::new(),
            owners: [0; KEYS.len()],
            truth: Vec::new(),
            events: 0,
        };
        for key in 0..KEYS.len() {
            world.truth.push(Truth {
                acknowledged: (0, false),
                possible: Vec::new(),
                by_revision: BTreeMap::new(),
            });
            world.owners[key] = key % BROKERS;
        }
        for node in 0..BROKERS {
            let broker = world.start_broker(node);
            world.brokers.push(broker);
        }
        world
    }

    fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn start_broker(&mut self, node: usize) -> Broker {
        self.sessions += 1;
        let volume = FaultyVolume::new(Arc::new(self.disk.clone()));
        let node = i32::try_from(node).unwrap();
        let shared: Arc<dyn Volume> = Arc::new(volume.clone());
        let session = Session::create(
            shared,
            SessionKind::Broker,
            node,
            Uuid::from_u128(self.sessions),
        );
        Broker {
            volume,
            fixture: Fixture::over(Arc::new(session.unwrap()), SEGMENT),
            memory: BTreeMap::new(),
            failed: BTreeSet::new(),
            gained: BTreeSet::new(),
            records: 0,
        }
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..LENGTH {
            let outcome = self.operation();
            self.settle(outcome)?;
        }
        let seed = self.dice.next();
        let outcome = self.power_cut(seed);
        self.settle(outcome)?;
        for broker in &self.brokers {
            broker.volume.heal();
        }
        for key in 0..KEYS.len() {
            let outcome = self
                .absorb_all()
                .and_then(|()| self.load(self.owners[key], key))
                .map(|_| ());
            self.settle(outcome)?;
        }
        Ok(())
    }

    /// A broker that finds itself fenced is taken over; another error is no news.
    fn settle(&mut self, mut outcome: Outcome) -> Result<(), String> {
        for _ in 0..20 {
            match outcome {
                Ok(()) | Err(Trouble::Failed) => return Ok(()),
                Err(Trouble::Violated(what)) => return Err(what),
                Err(Trouble::Fenced(broker)) => {
                    self.brokers[broker].volume.heal();
                    outcome = self.take_over(broker, false);
                }
            }
        }
        panic!("a healthy volume lets a takeover come about");
    }

    fn operation(&mut self) -> Outcome {
        let key = self.dice.below(KEYS.len());
        let broker = self.dice.below(BROKERS);
        let total = self.weights.iter().map(|(_, weight)| weight).sum();
        let mut drawn = self.dice.below(total);
        let drawn = self
            .weights
            .iter()
            .find(|(_, weight)| match drawn.checked_sub(*weight) {
                Some(rest) => {
                    drawn = rest;
                    false
                }
                None => true,
            });
        match drawn.expect("the draw is below the sum of the weights").0 {
            Operation::Commit => self.commit(key),
            Operation::Remove => self.remove(key),
            Operation::Publish => self.publish(key),
            Operation::Evict => self.evict(key),
            Operation::Trim => self.trim(broker),
            Operation::Move => self.move_key(key),
            Operation::EndJournals => self.end_journals(),
            Operation::Fault => {
                let faults = [
                    Fault::Io,
                    Fault::LostAnswer,
                    Fault::Full,
                    Fault::ShortWrite,
                    Fault::FailedSync,
                    Fault::FailedDirSync,
                ];
                let fault = faults[self.dice.below(faults.len())];
                let nth = 1 + self.dice.below(6) as u64;
                self.brokers[broker].volume.fail_at(nth, fault);
                Ok(())
            }
            Operation::Absorb => self.absorb_all(),
            Operation::Kill => self.take_over(broker, false),
            Operation::Freeze => self.take_over(broker, true),
            Operation::PowerCut => {
                let seed = self.dice.next();
                self.power_cut(seed)
            }
            Operation::ZombieActs => self.zombie_acts(),
        }
    }

    /// Whether the owner may answer for the key.
    fn serving(&self, key: usize) -> bool {
        !self.brokers[self.owners[key]].gained.contains(&key)
    }

    fn new_event(&mut self, exists: bool) -> Event {
        self.events += 1;
        (self.events, exists)
    }

    /// Makes records durable, in one batch.
    fn write(&mut self, broker: usize, changes: &[(usize, Kind, Revision, Event)]) -> Outcome {
        let mut records = Vec::new();
        for &(key, kind, revision, event) in changes {
            encode(
                &mut records,
                kind,
                KEYS[key],
                revision,
                event.0.to_string().as_bytes(),
            );
            if kind != Kind::Released {
                self.truth[key].by_revision.insert(revision, event);
            }
        }
        let own = &mut self.brokers[broker];
        own.records += changes.len() as u64;
        own.fixture.submit(&records, 0);
        let batch = own.fixture.next();
        let Err(failed) = batch.outcome else {
            return Ok(());
        };
        let mut keys: Vec<&str> = changes.iter().map(|change| KEYS[change.0]).collect();
        keys.sort_unstable();
        assert_eq!(failed.keys, keys);
        for &(key, ..) in changes {
            own.memory.remove(&key);
            own.failed.insert(key);
        }
        // The thread that prepares segments may have met the fence.
        if own.fixture.session.is_fenced() {
            return Err(Trouble::Fenced(broker));
        }
        assert!(own.fixture.journal.resume(batch.number));
        Err(Trouble::Failed)
    }

    /// The revision of a key's first record after it came into memory.
    fn first_revision(&self, broker: usize) -> Revision {
        Revision {
            term: self.version,
            n: self.brokers[broker].records + 1,
        }
    }

    /// Writes one change that a client waits for.
    fn change(
        &mut self,
        broker: usize,
        key: usize,
        kind: Kind,
        revision: Revision,
        event: Event,
    ) -> Outcome {
        self.truth[key].possible.push(event);
        self.write(broker, &[(key, kind, revision, event)])?;
        self.truth[key].acknowledged = event;
        self.truth[key].possible.clear();
        let memory = Memory {
            event,
            revision,
            is_fresh: false,
            is_file_current: false,
        };
        self.brokers[broker].memory.insert(key, memory);
        Ok(())
    }

    /// Checks what was found of a key, which from now on is what it is once that is durable.
    fn found(
        &self,
        broker: usize,
        key: usize,
        resolved: &Resolved,
        file: Option<(Revision, u64)>,
    ) -> Outcome<Event> {
        let truth = &self.truth[key];
        let event = match resolved {
            Resolved::Absent => (0, false),
            Resolved::Removed { revision } => truth.by_revision[revision],
            Resolved::State {
                base,
                deltas,
                revision,
            } => {
                let event = truth.by_revision[revision];
                let last = match (base, deltas.last()) {
                    (_, Some(delta)) => delta.to_vec(),
                    (Base::Document(document), None) => document.to_vec(),
                    (Base::File, None) => file.unwrap().1.to_string().into_bytes(),
                };
                assert_eq!(last, event.0.to_string().into_bytes());
                event
            }
        };
        let allowed = || truth.possible.iter().chain([&truth.acknowledged]);
        if !allowed().any(|possible| *possible == event || (!possible.1 && !event.1)) {
            return Err(Trouble::Violated(format!(
                "broker {broker} finds key {} as {event:?} ({resolved:?}); acknowledged was {:?}, possible {:?}",
                KEYS[key], truth.acknowledged, truth.possible
            )));
        }
        Ok(event)
    }

    fn read_file(&self, broker: usize, key: usize) -> Outcome<Option<(Revision, u64)>> {
        let volume = &self.brokers[broker].volume;
        let failed = |_| Trouble::Failed;
        // A name that was only just published must not vanish from under what is built on it.
        volume.sync_dir(GROUPS).map_err(failed)?;
        match volume.read_fresh(&file_path(key)) {
            Ok(text) => {
                let text = String::from_utf8(text).unwrap();
                let numbers: Vec<u64> = text
                    .split(' ')
                    .map(|number| number.parse().unwrap())
                    .collect();
                Ok(Some((
                    Revision {
                        term: numbers[0],
                        n: numbers[1],
                    },
                    numbers[2],
                )))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(_) => Err(Trouble::Failed),
        }
    }

    fn resolve(
        &self,
        key: usize,
        journals: Vec<SessionJournal>,
        file: Option<(Revision, u64)>,
    ) -> Outcome<Resolved> {
        Replay::read(journals)
            .resolve(KEYS[key], file.map(|(revision, _)| revision), self.version)
            .map_err(|error| match error {
                // A fault while reading it back.
                StorageError::Io { .. } => Trouble::Failed,
                error => Trouble::Violated(error.to_string()),
            })
    }

    /// Brings a key into its owner's memory, as the first request for it does.
    fn load(&mut self, broker: usize, key: usize) -> Outcome<Memory> {
        if let Some(memory) = self.brokers[broker].memory.get(&key) {
            return Ok(*memory);
        }
        let file = self.read_file(broker, key)?;
        if !self.brokers[broker].failed.contains(&key) {
            let resolved = self.resolve(key, Vec::new(), file)?;
            let event = self.found(broker, key, &resolved, file)?;
            let memory = Memory {
                event,
                revision: file.map_or(Revision::default(), |(revision, _)| revision),
                is_fresh: true,
                is_file_current: true,
            };
            self.brokers[broker].memory.insert(key, memory);
            return Ok(memory);
        }
        let journals = if self.keeps(Rule::ReloadWithTheOwnJournal) {
            vec![self.brokers[broker].fixture.journal.read_back()]
        } else {
            Vec::new()
        };
        let resolved = self.resolve(key, journals, file)?;
        self.adopt(broker, key, &resolved, file)
    }

    /// Makes what was found of a key durable in the broker's own journal, before anything is answered from it.
    fn adopt(
        &mut self,
        broker: usize,
        key: usize,
        resolved: &Resolved,
        file: Option<(Revision, u64)>,
    ) -> Outcome<Memory> {
        let event = self.found(broker, key, resolved, file)?;
        let kind = if event.1 {
            Kind::Document
        } else {
            Kind::Removed
        };
        let revision = self.first_revision(broker);
        self.change(broker, key, kind, revision, event)?;
        self.brokers[broker].failed.remove(&key);
        Ok(self.brokers[broker].memory[&key])
    }

    fn commit(&mut self, key: usize) -> Outcome {
        if !self.serving(key) {
            return Ok(());
        }
        let broker = self.owners[key];
        let memory = self.load(broker, key)?;
        let event = self.new_event(true);
        if memory.is_fresh || !memory.event.1 {
            let revision = self.first_revision(broker);
            self.change(broker, key, Kind::Document, revision, event)
        } else {
            self.change(broker, key, Kind::Offsets, memory.revision.next(), event)
        }
    }

    fn remove(&mut self, key: usize) -> Outcome {
        if !self.serving(key) {
            return Ok(());
        }
        let broker = self.owners[key];
        let memory = self.load(broker, key)?;
        if !memory.event.1 {
            return Ok(());
        }
        if !self.keeps(Rule::RemoveDurablyBeforeTheFile) {
            let session = &self.brokers[broker].fixture.session;
            let _ = session.retire(&file_path(key));
            if self.dice.percent(50) {
                // It dies in between.
                return self.take_over(broker, false);
            }
        }
        let event = self.new_event(false);
        let revision = if memory.is_fresh {
            self.first_revision(broker)
        } else {
            memory.revision.next()
        };
        self.change(broker, key, Kind::Removed, revision, event)
    }

    /// Brings the key's file to the state in memory.
    fn publish(&mut self, key: usize) -> Outcome {
        let broker = self.owners[key];
        let own = &mut self.brokers[broker];
        let Some(memory) = own
            .memory
            .get_mut(&key)
            .filter(|memory| !memory.is_file_current)
        else {
            return Ok(());
        };
        let session = &own.fixture.session;
        let published = if memory.event.1 {
            let text = format!(
                "{} {} {}",
                memory.revision.term, memory.revision.n, memory.event.0
            );
            session.publish(&file_path(key), text.as_bytes())
        } else {
            session.retire(&file_path(key)).map(|_| ())
        };
        match published {
            Ok(()) => {
                own.fixture.journal.file_is(KEYS[key], memory.revision);
                memory.is_file_current = true;
                Ok(())
            }
            Err(error) if error.is_fenced() => Err(Trouble::Fenced(broker)),
            Err(_) => Err(Trouble::Failed),
        }
    }

    fn evict(&mut self, key: usize) -> Outcome {
        let memory = &mut self.brokers[self.owners[key]].memory;
        if memory
            .get(&key)
            .is_some_and(|memory| memory.is_file_current)
        {
            memory.remove(&key);
        }
        Ok(())
    }

    fn trim(&mut self, broker: usize) -> Outcome {
        let named = self.keeps(Rule::CarryRemovedWhileAJournalIsNamed) && !self.named.is_empty();
        let limit = TrimLimit {
            max_bytes: LIMIT,
            documents_behind_bytes: 0,
            journals_named: named,
        };
        for (name, carry) in self.brokers[broker].fixture.journal.wanted(limit) {
            let key = KEYS.iter().position(|key| *key == name).unwrap();
            if !self.keeps(Rule::CarryOnBeforeTrimming) {
                let newest = Revision {
                    term: self.version + 1,
                    n: 0,
                };
                self.brokers[broker].fixture.journal.file_is(&name, newest);
                continue;
            }
            if self.brokers[broker].failed.contains(&key) {
                // Its reload is made durable, which is as good.
                self.load(broker, key)?;
                continue;
            }
            let (kind, revision, event) = match carry {
                Carry::Removed { revision } => (
                    Kind::Removed,
                    revision,
                    self.truth[key].by_revision[&revision],
                ),
                Carry::Document => {
                    let memory = self.brokers[broker].memory[&key];
                    (Kind::Document, memory.revision, memory.event)
                }
            };
            self.write(broker, &[(key, kind, revision, event)])?;
        }
        match self.brokers[broker].fixture.journal.trim(limit) {
            Ok(_) => Ok(()),
            Err(error) if error.is_fenced() => Err(Trouble::Fenced(broker)),
            Err(_) => Err(Trouble::Failed),
        }
    }

    /// A planned move to the other broker.
    fn move_key(&mut self, key: usize) -> Outcome {
        let loser = self.owners[key];
        if !self.named.is_empty() || !self.serving(key) {
            return Ok(());
        }
        if self.brokers[loser].memory.contains_key(&key)
            || self.brokers[loser].failed.contains(&key)
        {
            self.load(loser, key)?;
            self.publish(key)?;
        }
        self.version += 1;
        // Until the release is acknowledged nobody has the key; the loser goes on trying.
        while self.keeps(Rule::ReleaseWhatMoves)
            && self.brokers[loser]
                .fixture
                .journal
                .unreleased()
                .contains(&KEYS[key].to_owned())
        {
            match self.write(
                loser,
                &[(key, Kind::Released, Revision::default(), (0, false))],
            ) {
                Ok(()) => break,
                Err(Trouble::Failed) => {}
                Err(trouble) => return Err(trouble),
            }
        }
        self.brokers[loser].memory.remove(&key);
        self.brokers[loser].failed.remove(&key);
        self.version += 1;
        self.owners[key] = (loser + 1) % BROKERS;
        Ok(())
    }

    /// The broker is declared dead, rightly or not; its keys go to the other one, and it comes back without any.
    fn take_over(&mut self, broker: usize, as_zombie: bool) -> Outcome {
        let heir = (broker + 1) % BROKERS;
        if self.keeps(Rule::FenceBeforeGranting) {
            session::fence(&self.disk, self.brokers[broker].fixture.session.name()).unwrap();
        }
        let fresh = self.start_broker(broker);
        let dead = mem::replace(&mut self.brokers[broker], fresh);
        let lost: Vec<usize> = (0..KEYS.len())
            .filter(|key| self.owners[*key] == broker)
            .collect();
        for &key in &lost {
            self.owners[key] = heir;
            self.brokers[heir].gained.insert(key);
        }
        if as_zombie || !self.keeps(Rule::FenceBeforeGranting) {
            self.zombies.push((dead, lost));
            self.zombie_acts()?;
        }
        self.version += 1;
        self.named = list_left_behind(&self.disk).unwrap();
        self.absorb(heir)
    }

    /// A broker that does not know it was declared dead goes on committing.
    fn zombie_acts(&mut self) -> Outcome {
        let Some((zombie, keys)) = self.zombies.last_mut() else {
            return Ok(());
        };
        for &key in keys.iter() {
            let Some(memory) = zombie.memory.get_mut(&key).filter(|memory| memory.event.1) else {
                continue;
            };
            self.events += 1;
            let event = (self.events, true);
            let revision = if memory.is_fresh {
                Revision {
                    term: self.version.saturating_sub(1),
                    n: zombie.records + 1,
                }
            } else {
                memory.revision.next()
            };
            let kind = if memory.is_fresh {
                Kind::Document
            } else {
                Kind::Offsets
            };
            *memory = Memory {
                event,
                revision,
                is_fresh: false,
                is_file_current: false,
            };
            zombie.records += 1;
            self.truth[key].by_revision.insert(revision, event);
            if self.brokers[self.owners[key]].gained.contains(&key) {
                self.truth[key].possible.push(event);
            }
            let mut record = Vec::new();
            encode(
                &mut record,
                kind,
                KEYS[key],
                revision,
                event.0.to_string().as_bytes(),
            );
            zombie.fixture.submit(&record, 0);
            if zombie.fixture.next().outcome.is_ok() {
                self.truth[key].acknowledged = event;
            }
            // Its file writer does not know better either.
            let text = format!("{} {} {}", revision.term, revision.n, event.0);
            let _ = zombie
                .fixture
                .session
                .publish(&file_path(key), text.as_bytes());
        }
        Ok(())
    }

    fn absorb_all(&mut self) -> Outcome {
        for broker in 0..BROKERS {
            self.absorb(broker)?;
        }
        Ok(())
    }

    fn absorb(&mut self, broker: usize) -> Outcome {
        let gained = self.brokers[broker].gained.clone();
        if !self.keeps(Rule::AbsorbBeforeServing) {
            self.brokers[broker].gained.clear();
            return Ok(());
        }
        if gained.is_empty() {
            return Ok(());
        }
        let journals = read_left_behind(&self.brokers[broker].volume, &self.named);
        for key in gained {
            let replay = Replay::read(journals.clone());
            // What could not be read may have been about any key.
            if replay.keys().contains(KEYS[key]) || replay.damage().next().is_some() {
                let file = self.read_file(broker, key)?;
                let resolved = self.resolve(key, journals.clone(), file)?;
                self.adopt(broker, key, &resolved, file)?;
            }
            self.brokers[broker].gained.remove(&key);
        }
        Ok(())
    }

    /// The journals were absorbed by all; their files go, all or, if the controller dies, the oldest only.
    fn end_journals(&mut self) -> Outcome {
        if self.named.is_empty() || self.brokers.iter().any(|broker| !broker.gained.is_empty()) {
            return Ok(());
        }
        if self.dice.percent(30) {
            remove_left_behind(&self.controller, &self.named[..1]).unwrap();
            return Ok(());
        }
        remove_left_behind(&self.controller, &self.named).unwrap();
        self.named.clear();
        self.version += 1;
        Ok(())
    }

    /// All machines lose power; everybody starts anew and keys go anywhere.
    fn power_cut(&mut self, seed: u64) -> Outcome {
        self.disk = self.disk.power_cut(seed);
        self.brokers.clear();
        self.zombies.clear();
        for session in session::list_sessions(&self.disk).unwrap() {
            session::fence(&self.disk, session).unwrap();
        }
        self.sessions += 1;
        self.controller = controller(&self.disk, self.sessions);
        for node in 0..BROKERS {
            let broker = self.start_broker(node);
            self.brokers.push(broker);
        }
        self.version += 1;
        self.named = list_left_behind(&self.disk).unwrap();
        for key in 0..KEYS.len() {
            self.owners[key] = self.dice.below(BROKERS);
            self.brokers[self.owners[key]].gained.insert(key);
        }
        self.absorb_all()
    }
}

fn controller(disk: &MemoryVolume, uuid: u128) -> Arc<Session> {
    let disk = Arc::new(disk.clone());
    Arc::new(Session::create(disk, SessionKind::Controller, 9, Uuid::from_u128(uuid)).unwrap())
}

#[test]
fn no_history_loses_or_resurrects_what_was_acknowledged() {
    for seed in 0..2_000 {
        if let Err(violation) = World::new(seed, None).run() {
            panic!("seed {seed}: {violation}");
        }
    }
}

#[test]
fn without_any_one_of_the_rules_a_history_loses_or_resurrects() {
    for rule in [
        Rule::FenceBeforeGranting,
        Rule::AbsorbBeforeServing,
        Rule::CarryOnBeforeTrimming,
        Rule::ReleaseWhatMoves,
        Rule::ReloadWithTheOwnJournal,
        Rule::RemoveDurablyBeforeTheFile,
    ] {
        let found = (0..2_000).any(|seed| World::new(seed, Some(rule)).run().is_err());
        assert!(found, "no history misses the rule {rule:?}");
    }
}

/// Too rare to be met by chance: the journal of a first owner still names a key that the second has removed, and then
/// the second dies too.
fn a_removal_outlived_by_a_named_journal(without: Option<Rule>) -> Result<(), String> {
    const A: usize = 0;
    const FILLER: usize = 2;
    let mut world = World::new(1, without);
    let unexpected = |trouble: Trouble| format!("{trouble:?}");
    world.commit(A).map_err(unexpected)?;
    world.take_over(0, false).map_err(unexpected)?;
    world.remove(A).map_err(unexpected)?;
    world.publish(A).map_err(unexpected)?;
    for _ in 0..100 {
        world.commit(FILLER).map_err(unexpected)?;
        world.publish(FILLER).map_err(unexpected)?;
        world.trim(1).map_err(unexpected)?;
    }
    world.take_over(1, false).map_err(unexpected)?;
    world.load(0, A).map(|_| ()).map_err(unexpected)
}

#[test]
fn a_removed_key_is_not_resurrected_by_a_journal_that_is_still_named() {
    a_removal_outlived_by_a_named_journal(None).unwrap();
    let without =
        a_removal_outlived_by_a_named_journal(Some(Rule::CarryRemovedWhileAJournalIsNamed));
    assert!(without.unwrap_err().contains("Violated"));
}
