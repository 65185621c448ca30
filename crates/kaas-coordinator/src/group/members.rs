//! The members of a classic group, in the order they came, with the counts that make the group's questions cheap: who
//! is parked, who has yet to sync, how many offer a protocol. Whoever changes a member goes through here.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fnv::FnvHashMap;

use kaas_wire::ErrorCode;

/// A deadline that never comes.
pub(super) const NEVER: u64 = u64::MAX;

pub(super) struct Member<R> {
    pub id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub client_id: Box<str>,
    pub client_host: Box<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub assignment: Bytes,
    /// It joined, but no join phase has ended since: its session does not count yet (CG-74).
    pub is_new: bool,
    pub session_deadline: u64,
    /// In its order of preference, each name once.
    protocols: Box<[Protocol]>,
    join: Option<ParkedJoin<R>>,
    sync: Option<R>,
    awaits_sync: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Protocol {
    pub name: Box<str>,
    pub metadata: Bytes,
}

/// A JoinGroup whose answer waits for the end of the join phase.
pub(super) struct ParkedJoin<R> {
    pub reply_to: R,
    pub version: i16,
}

impl<R> Member<R> {
    pub fn protocols(&self) -> &[Protocol] {
        &self.protocols
    }

    /// Its metadata for `protocol`; empty if it does not offer it.
    pub fn metadata(&self, protocol: &str) -> Bytes {
        self.protocols
            .iter()
            .find(|offered| &*offered.name == protocol)
            .map_or_else(Bytes::new, |offered| offered.metadata.clone())
    }

    pub fn joins(&self) -> bool {
        self.join.is_some()
    }

    pub fn syncs(&self) -> bool {
        self.sync.is_some()
    }

    pub fn awaits_sync(&self) -> bool {
        self.awaits_sync
    }

    /// Same names and bytes in the same order (CG-62).
    pub fn offers(&self, protocols: &[Protocol]) -> bool {
        *self.protocols == *protocols
    }
}

/// A member's place; stays the same when a static member gets a new id.
pub(super) type Seat = u64;

pub(super) struct Members<R> {
    by_seat: BTreeMap<Seat, Box<Member<R>>>,
    by_id: FnvHashMap<Arc<str>, Seat>,
    by_instance: FnvHashMap<Arc<str>, Seat>,
    next_seat: Seat,
    /// How many members offer each protocol.
    supporters: FnvHashMap<Box<str>, usize>,
    joining: usize,
    syncing: usize,
    awaiting_sync: usize,
}

/// What a new member brings along.
pub(super) struct NewMember<R> {
    pub id: Arc<str>,
    pub instance_id: Option<Arc<str>>,
    pub client_id: Box<str>,
    pub client_host: Box<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    pub protocols: Box<[Protocol]>,
    pub assignment: Bytes,
    pub join: Option<ParkedJoin<R>>,
    pub session_deadline: u64,
}

impl<R> Members<R> {
    pub fn new() -> Members<R> {
        Members {
            by_seat: BTreeMap::new(),
            by_id: FnvHashMap::default(),
            by_instance: FnvHashMap::default(),
            next_seat: 0,
            supporters: FnvHashMap::default(),
            joining: 0,
            syncing: 0,
            awaiting_sync: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.by_seat.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_seat.is_empty()
    }

    pub fn joining(&self) -> usize {
        self.joining
    }

    pub fn syncing(&self) -> usize {
        self.syncing
    }

    pub fn awaiting_sync(&self) -> usize {
        self.awaiting_sync
    }

    /// In the order they came.
    pub fn iter(&self) -> impl Iterator<Item = &Member<R>> {
        self.by_seat.values().map(|member| &**member)
    }

    pub fn seats(&self) -> Vec<Seat> {
        self.by_seat.keys().copied().collect()
    }

    pub fn seat(&self, id: &str) -> Option<Seat> {
        self.by_id.get(id).copied()
    }

    pub fn seat_of_instance(&self, instance_id: &str) -> Option<Seat> {
        self.by_instance.get(instance_id).copied()
    }

    /// The seat of the member that a request names by its id and, perhaps, instance id (CG-55, CG-91).
    pub fn identify(&self, id: &str, instance_id: Option<&str>) -> Result<Seat, ErrorCode> {
        if let Some(instance_id) = instance_id {
            let seat = self
                .seat_of_instance(instance_id)
                .ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
            if &*self[seat].id != id {
                return Err(ErrorCode::FENCED_INSTANCE_ID);
            }
        }
        self.seat(id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)
    }

    pub fn get_mut(&mut self, seat: Seat) -> &mut Member<R> {
        self.by_seat
            .get_mut(&seat)
            .expect("a seat in hand is taken")
    }

    pub fn add(&mut self, new: NewMember<R>) -> Seat {
        let seat = self.next_seat;
        self.next_seat += 1;
        self.by_id.insert(new.id.clone(), seat);
        if let Some(instance_id) = &new.instance_id {
            self.by_instance.insert(instance_id.clone(), seat);
        }
        self.count_supporters(&new.protocols);
        self.joining += usize::from(new.join.is_some());
        let member = Member {
            id: new.id,
            instance_id: new.instance_id,
            client_id: new.client_id,
            client_host: new.client_host,
            rebalance_timeout_ms: new.rebalance_timeout_ms,
            session_timeout_ms: new.session_timeout_ms,
            assignment: new.assignment,
            is_new: new.join.is_some(),
            session_deadline: new.session_deadline,
            protocols: new.protocols,
            join: new.join,
            sync: None,
            awaits_sync: false,
        };
        self.by_seat.insert(seat, Box::new(member));
        seat
    }

    /// The caller answers what was parked.
    pub fn remove(&mut self, seat: Seat) -> Removed<R> {
        let mut member = self.by_seat.remove(&seat).expect("a seat in hand is taken");
        self.by_id.remove(&member.id);
        if let Some(instance_id) = &member.instance_id {
            self.by_instance.remove(instance_id);
        }
        self.discount_supporters(&member.protocols);
        self.joining -= usize::from(member.join.is_some());
        self.syncing -= usize::from(member.sync.is_some());
        self.awaiting_sync -= usize::from(member.awaits_sync);
        let (join, sync) = (member.join.take(), member.sync.take());
        Removed { member, join, sync }
    }

    /// Gives a static member its new id. What was parked under the old one is for the caller to answer.
    pub fn rename(&mut self, seat: Seat, id: Arc<str>) -> (Option<ParkedJoin<R>>, Option<R>) {
        let parked = (self.take_join(seat), self.take_sync(seat));
        let member = self.get_mut(seat);
        let old_id = std::mem::replace(&mut member.id, id.clone());
        self.by_id.remove(&old_id);
        self.by_id.insert(id, seat);
        parked
    }

    pub fn set_protocols(&mut self, seat: Seat, protocols: Box<[Protocol]>) {
        self.count_supporters(&protocols);
        let old = std::mem::replace(&mut self.get_mut(seat).protocols, protocols);
        self.discount_supporters(&old);
    }

    pub fn everyone_supports(&self, protocol: &str) -> bool {
        self.supporters.get(protocol).copied().unwrap_or(0) == self.len()
    }

    /// An earlier JoinGroup of the same member comes back for an answer (CG-64).
    pub fn park_join(&mut self, seat: Seat, join: ParkedJoin<R>) -> Option<ParkedJoin<R>> {
        let earlier = self.get_mut(seat).join.replace(join);
        self.joining += usize::from(earlier.is_none());
        earlier
    }

    pub fn take_join(&mut self, seat: Seat) -> Option<ParkedJoin<R>> {
        let join = self.get_mut(seat).join.take();
        self.joining -= usize::from(join.is_some());
        join
    }

    pub fn park_sync(&mut self, seat: Seat, reply_to: R) -> Option<R> {
        let earlier = self.get_mut(seat).sync.replace(reply_to);
        self.syncing += usize::from(earlier.is_none());
        earlier
    }

    pub fn take_sync(&mut self, seat: Seat) -> Option<R> {
        let sync = self.get_mut(seat).sync.take();
        self.syncing -= usize::from(sync.is_some());
        sync
    }

    pub fn await_sync_from_all(&mut self) {
        for member in self.by_seat.values_mut() {
            member.awaits_sync = true;
        }
        self.awaiting_sync = self.by_seat.len();
    }

    pub fn await_sync_from_none(&mut self) {
        if self.awaiting_sync > 0 {
            for member in self.by_seat.values_mut() {
                member.awaits_sync = false;
            }
            self.awaiting_sync = 0;
        }
    }

    pub fn has_synced(&mut self, seat: Seat) {
        let member = self.get_mut(seat);
        if member.awaits_sync {
            member.awaits_sync = false;
            self.awaiting_sync -= 1;
        }
    }

    fn count_supporters(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            match self.supporters.get_mut(&protocol.name) {
                Some(count) => *count += 1,
                None => {
                    self.supporters.insert(protocol.name.clone(), 1);
                }
            }
        }
    }

    fn discount_supporters(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            let count = self
                .supporters
                .get_mut(&protocol.name)
                .expect("an offered protocol is counted");
            *count -= 1;
            if *count == 0 {
                self.supporters.remove(&protocol.name);
            }
        }
    }

    /// That counts and indexes agree with the members.
    pub fn debug_check(&self) {
        let count =
            |test: fn(&Member<R>) -> bool| self.iter().filter(|member| test(member)).count();
        assert_eq!(self.by_id.len(), self.len(), "every member has one id");
        assert_eq!(
            self.by_instance.len(),
            count(|member| member.instance_id.is_some()),
            "static members are indexed"
        );
        assert_eq!(
            self.joining,
            count(Member::joins),
            "parked joins are counted"
        );
        assert_eq!(
            self.syncing,
            count(Member::syncs),
            "parked syncs are counted"
        );
        assert_eq!(
            self.awaiting_sync,
            count(Member::awaits_sync),
            "awaited syncs are counted"
        );
        let offers: usize = self.iter().map(|member| member.protocols.len()).sum();
        assert_eq!(
            self.supporters.values().sum::<usize>(),
            offers,
            "offered protocols are counted"
        );
        for (seat, member) in &self.by_seat {
            assert_eq!(
                self.by_id.get(&member.id),
                Some(seat),
                "a member is found by its id"
            );
            if let Some(instance_id) = &member.instance_id {
                assert_eq!(
                    self.by_instance.get(instance_id),
                    Some(seat),
                    "a static member is found by its instance id"
                );
            }
        }
    }
}

impl<R> std::ops::Index<Seat> for Members<R> {
    type Output = Member<R>;

    fn index(&self, seat: Seat) -> &Member<R> {
        &self.by_seat[&seat]
    }
}

pub(super) struct Removed<R> {
    pub member: Box<Member<R>>,
    pub join: Option<ParkedJoin<R>>,
    pub sync: Option<R>,
}
