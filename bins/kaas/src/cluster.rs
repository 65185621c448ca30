//! The cluster runtime of one process: its session on the volume, the election, the swap of the assignment source, and
//! the order in which a broker starts and stops.
//!
//! The order of a start: bind (a port in use fails before the volume is touched), session, fence former ones of this
//! node id, election, controller's session, epoch, assignment published and swapped in, former journals absorbed,
//! accept. What each step is for is in `docs/architecture.md`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use arc_swap::ArcSwap;
use kaas_broker::Broker;
use kaas_broker::admin::AdminServer;
use kaas_broker::assignment::{
    ASSIGNMENT_PATH, Assignment, BrokerEntry, BrokerState, ClusterView, GroupAssignmentSource,
    NotYetAssigned,
};
use kaas_broker::clock::Clock;
use kaas_broker::config::Config;
use kaas_broker::config::live::LiveConfig;
use kaas_broker::config::settings::Settings;
use kaas_broker::controller::{Controller, KnownTopics, NewPartitions};
use kaas_broker::coordinator::actor::{self, Groups, Source, Work};
use kaas_broker::coordinator::{Coordinator, recovery};
use kaas_broker::ids::Ids;
use kaas_broker::metrics::Metrics;
use kaas_broker::pages::BrokerPages;
use kaas_broker::partitions::Partitions;
use kaas_broker::resource_configs::ResourceConfigs;
use kaas_broker::server::{Bound, Limits, Server};
use kaas_broker::topics::{Topic, TopicWatcher, Topics};
use kaas_coordinator::GroupConfig;
use kaas_storage::StorageError;
use kaas_storage::layout;
use kaas_storage::session::{self, Session, SessionKind};
use kaas_storage::volume::{DiskVolume, Lock, Volume};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

/// Held by the controller. A hint only: what makes a second controller harmless is that it fences the first.
const LOCK_PATH: &str = "__cluster/controller.lock";

/// How often the token is moved when nothing else moves it, which is how a broker notices that it was fenced.
const TOKEN_INTERVAL: Duration = Duration::from_secs(1);

/// How often the lock is asked for while the process that holds it goes down.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// What the parked and unanswered requests of a broker that stops have left to complete in.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// The text of a `--config` file.
pub fn read_properties(path: &Path) -> std::io::Result<String> {
    kaas_storage::volume::read_local(path)
}

/// Runs a broker until it is told to stop or is fenced.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let config = Arc::new(LiveConfig::new(&settings)?);
    let started_with = Arc::clone(&config.load());
    let bound = bind(&started_with).await?;
    let admin = bind_admin(&started_with).await?;
    let clock = Clock::system();
    let ids = Ids::random();

    let volume = open_volume(&started_with).await?;
    let entry = enter(&volume, &started_with, &ids).await?;
    let metrics = Arc::new(Metrics::default());
    let pages = Arc::new(BrokerPages::new(Arc::clone(&metrics)));
    let admin = AdminServer::start(admin, pages.clone());
    let broker = assemble(
        config,
        &bound,
        volume,
        &entry,
        clock.clone(),
        ids,
        Arc::clone(&metrics),
    )
    .await?;

    let address = bound.local_addr();
    let server = bound.serve(Arc::clone(&broker), limits(&started_with), clock, metrics);
    pages.serving(Arc::clone(&broker));
    println!("kaas {} ready on {address}", broker.node_id);

    let outcome = tokio::select! {
        fenced = watch_session(Arc::clone(&entry.broker)) => Err(fenced),
        told = told_to_stop() => told,
    };
    pages.stopping();
    tokio::select! {
        () = stop(&broker, &server, admin) => {}
        told = told_to_stop() => {
            told?;
            warn!("told a second time: stopping at once; nothing acknowledged is lost");
        }
    }
    outcome
}

/// Binds what clients connect to. Nothing is accepted yet.
async fn bind(config: &Config) -> anyhow::Result<Bound> {
    let address = host_port(&config.listeners);
    let advertised = match config.advertised_listeners.as_deref().map(host_port) {
        Some(advertised) => Some(
            advertised
                .rsplit_once(':')
                .and_then(|(host, port)| Some((host, port.parse().ok()?)))
                .context("the configuration was checked")?,
        ),
        None => None,
    };
    Bound::bind(address, advertised).await.with_context(|| {
        format!("cannot listen on {address}; stop what listens there or choose another --listen")
    })
}

/// Binds the admin port. Where the default one is taken, as by a second broker on the machine, a free one is used.
async fn bind_admin(config: &Config) -> anyhow::Result<TcpListener> {
    let address = &config.kaas_admin_listener;
    let listener = match TcpListener::bind(address).await {
        Err(error)
            if error.kind() == std::io::ErrorKind::AddrInUse
                && *address == Config::default().kaas_admin_listener =>
        {
            warn!(
                address,
                "the default admin port is taken; another one is used"
            );
            TcpListener::bind("127.0.0.1:0").await
        }
        bound => bound,
    };
    let listener =
        listener.with_context(|| format!("cannot listen on {address}; choose another --admin"))?;
    info!(address = %listener.local_addr()?, "admin port: /healthz /readyz /metrics /assignment");
    Ok(listener)
}

/// `HOST:PORT` of `PLAINTEXT://HOST:PORT`.
fn host_port(listener: &str) -> &str {
    listener.rsplit("//").next().unwrap_or(listener)
}

async fn open_volume(config: &Config) -> anyhow::Result<Arc<dyn Volume>> {
    let path = config.log_dirs.clone();
    blocking(move || {
        let volume = DiskVolume::open(Path::new(&path))?;
        layout::create(&volume)?;
        volume.check_mount()?;
        Ok(Arc::new(volume) as Arc<dyn Volume>)
    })
    .await
}

/// This process's own sessions, and the lock of the controller if it could be had.
struct Entry {
    broker: Arc<Session>,
    controller: Arc<Session>,
    _lock: Option<Lock>,
}

/// Makes the sessions, after which no former process of this node id and no former controller can publish anything.
async fn enter(volume: &Arc<dyn Volume>, config: &Config, ids: &Ids) -> anyhow::Result<Entry> {
    let node_id = config.node_id;
    let patience = Duration::from_millis(config.broker_session_timeout_ms.unsigned_abs().into());
    let volume = Arc::clone(volume);
    let mut lock = {
        let volume = Arc::clone(&volume);
        blocking(move || try_lock(volume.as_ref())).await?
    };
    if lock.is_none() {
        let volume = Arc::clone(&volume);
        let others = blocking(move || session::list_sessions(volume.as_ref())).await?;
        let other = others
            .iter()
            .find(|other| other.kind == SessionKind::Broker && other.node_id != node_id);
        if let Some(other) = other {
            bail!(
                "the volume is served by broker {} (session {other}); a second broker cannot join it yet: stop that \
                 one, or start with --node-id {} to take over from it",
                other.node_id,
                other.node_id
            );
        }
    }
    let broker = create_session(&volume, SessionKind::Broker, node_id, ids).await?;
    let former = {
        let (volume, mine) = (Arc::clone(&volume), broker.name());
        blocking(move || session::fence_others_of_node(volume.as_ref(), mine)).await?
    };
    for former in &former {
        info!(session = %former, "a former session of this node id is fenced");
    }
    let deadline = tokio::time::Instant::now() + patience;
    while lock.is_none() && tokio::time::Instant::now() < deadline {
        // The process that was just fenced holds it until it has noticed.
        tokio::time::sleep(LOCK_RETRY).await;
        let volume = Arc::clone(&volume);
        lock = blocking(move || try_lock(volume.as_ref())).await?;
    }
    if lock.is_none() {
        warn!(
            "the former controller's process still holds its lock, perhaps because it is frozen; it is fenced all the same"
        );
    }
    let controller = create_session(&volume, SessionKind::Controller, node_id, ids).await?;
    let mine = controller.name();
    let own = broker.name();
    blocking(move || {
        session::fence_other_controllers(volume.as_ref(), mine)?;
        // Whoever held the lock before was the only broker of the volume.
        for other in session::list_sessions(volume.as_ref())? {
            if other.kind == SessionKind::Broker && other != own {
                session::fence(volume.as_ref(), other)?;
                info!(session = %other, "the session of a broker that is gone is fenced");
            }
        }
        session::empty_trash(volume.as_ref())
    })
    .await?;
    Ok(Entry {
        broker,
        controller,
        _lock: lock,
    })
}

fn try_lock(volume: &dyn Volume) -> Result<Option<Lock>, StorageError> {
    volume
        .lock(LOCK_PATH)
        .map_err(|error| StorageError::from_io("lock", LOCK_PATH, error))
}

async fn create_session(
    volume: &Arc<dyn Volume>,
    kind: SessionKind,
    node_id: i32,
    ids: &Ids,
) -> anyhow::Result<Arc<Session>> {
    let volume = Arc::clone(volume);
    let uuid = uuid::Uuid::from_bytes(ids.uuid_bytes());
    blocking(move || Session::create(volume, kind, node_id, uuid).map(Arc::new)).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> anyhow::Result<T> {
    Ok(tokio::task::spawn_blocking(work).await??)
}

/// Puts the broker together: the assignment is published and applied, former journals are taken over. When it returns
/// the broker serves whatever connects.
async fn assemble(
    config: Arc<LiveConfig>,
    bound: &Bound,
    volume: Arc<dyn Volume>,
    entry: &Entry,
    clock: Clock,
    ids: Ids,
    metrics: Arc<Metrics>,
) -> anyhow::Result<Arc<Broker>> {
    let node_id = config.load().node_id;
    let session = Arc::clone(&entry.broker);
    let (previous, epoch, (topics, leftovers)) = {
        let (volume, session) = (Arc::clone(&volume), Arc::clone(&session));
        blocking(move || {
            let previous = read_assignment(volume.as_ref())?;
            let seen = previous
                .as_ref()
                .map_or(0, |previous| previous.controller_epoch);
            let epoch = session::claim_epoch(volume.as_ref(), u64::from(seen))?;
            Ok((previous, epoch, Topics::open(volume, session)?))
        })
        .await?
    };
    let previous = previous.unwrap_or_else(|| Assignment {
        cluster_id: ids.kafka_uuid().to_string(),
        ..Assignment::default()
    });
    let epoch = u32::try_from(epoch).context("the volume has seen 4 billion controllers")?;

    let topics = Arc::new(topics);
    let resource_configs = {
        let (volume, session) = (Arc::clone(&volume), Arc::clone(&session));
        let (config, topics) = (Arc::clone(&config), Arc::clone(&topics));
        blocking(move || ResourceConfigs::open(node_id, volume, session, config, topics)).await?
    };
    let partitions = Arc::new(Partitions::new(
        node_id,
        Arc::clone(&volume),
        Arc::clone(&session),
        clock.clone(),
        ids.clone(),
        Arc::clone(&config),
    ));
    let source: Arc<Source> = Arc::new(ArcSwap::from_pointee(
        Box::new(NotYetAssigned { node_id }) as Box<dyn GroupAssignmentSource>
    ));
    let groups = Groups::start(
        Arc::clone(&session),
        Arc::clone(&source),
        group_settings(&config.load()),
        clock.clone(),
        ids.clone(),
        Arc::clone(&metrics),
        Arc::clone(&topics),
    )?;
    let cluster = Arc::new(ArcSwap::from_pointee(ClusterView::default()));

    let apply = {
        let (cluster, source, topics, partitions, groups) = (
            Arc::clone(&cluster),
            Arc::clone(&source),
            Arc::clone(&topics),
            Arc::clone(&partitions),
            groups.clone(),
        );
        Box::new(move |assignment: &Arc<Assignment>| {
            let view = Arc::new(ClusterView::of(assignment));
            partitions.apply(&topics.table(), &view);
            cluster.store(view);
            source.store(Arc::new(
                Box::new(Coordinator::new(node_id, Arc::clone(assignment)))
                    as Box<dyn GroupAssignmentSource>,
            ));
            groups.submit(Work::Assigned);
        })
    };
    let me = BrokerEntry {
        id: node_id,
        host: bound.listener().host.clone(),
        port: bound.listener().port,
        session: session.name().to_string(),
        state: BrokerState::Alive,
    };
    let known = {
        let table = topics.table();
        KnownTopics {
            topics: table
                .iter()
                .map(|topic| NewPartitions {
                    topic: topic.name.clone(),
                    topic_id: topic.id,
                    partitions: 0..topic.partitions,
                })
                .collect(),
            complete: !table.has_refused(),
        }
    };
    let controller = {
        let (volume, session) = (Arc::clone(&volume), Arc::clone(&entry.controller));
        blocking(move || {
            Controller::start(volume, session, epoch, previous, me, &known, apply).map(Arc::new)
        })
        .await?
    };

    topics.watch(partitions.clone());
    resource_configs.drive(&partitions);
    topics.watch(Arc::new(DeletedTopics(groups.clone())));
    config.subscribe({
        let groups = groups.clone();
        move |config| groups.submit(Work::Configure(group_settings(config)))
    });
    absorb_journals(&volume, &groups, &controller).await?;

    partitions.open_in_background();
    {
        let topics = Arc::clone(&topics);
        tokio::task::spawn_blocking(move || {
            for id in leftovers {
                topics.remove_data(id);
            }
        });
    }
    tokio::spawn(Arc::clone(&partitions).keep_up());
    Ok(Arc::new(Broker {
        node_id,
        config,
        cluster,
        clock,
        ids,
        topics,
        resource_configs: Arc::new(resource_configs),
        partitions,
        groups,
        controller,
        metrics,
    }))
}

/// The table as it was left. `None` on a new volume only: state without a table is reported, never guessed over.
fn read_assignment(volume: &dyn Volume) -> Result<Option<Assignment>, StorageError> {
    let corrupt = |why: String| {
        StorageError::Corrupt {
        path: ASSIGNMENT_PATH.to_owned(),
        why,
        remedy: "restore it from a backup; without one, stop every broker and write one by hand with the brokers' \
                 ids and a controller_epoch above every name in __cluster/epochs"
            .to_owned(),
    }
    };
    match volume.read_fresh(ASSIGNMENT_PATH) {
        Ok(text) => match Assignment::from_json(&text) {
            Ok(assignment) => Ok(Some(assignment)),
            Err(error) => Err(corrupt(format!("it does not parse: {error}"))),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            for directory in [
                layout::GROUPS,
                layout::TOPIC_FILES,
                layout::JOURNALS,
                layout::TRANSACTIONS,
                layout::TOPICS,
            ] {
                let entries = volume
                    .list_fresh(directory)
                    .map_err(|error| StorageError::from_io("list", directory, error))?;
                if !entries.is_empty() {
                    return Err(corrupt(format!(
                        "it is missing, but {directory} is not empty"
                    )));
                }
            }
            Ok(None)
        }
        Err(error) => Err(StorageError::from_io("read", ASSIGNMENT_PATH, error)),
    }
}

/// Takes over what the journals of dead sessions say; the controller lets go of them once this broker's own says it too.
async fn absorb_journals(
    volume: &Arc<dyn Volume>,
    groups: &Groups,
    controller: &Arc<Controller>,
) -> anyhow::Result<()> {
    let assignment = controller.current().await;
    let named = assignment
        .journals
        .iter()
        .filter_map(|name| name.parse().ok())
        .collect::<Vec<_>>();
    let recovered = {
        let volume = Arc::clone(volume);
        let version = assignment.version;
        blocking(move || {
            // Files that are loaded later without being written again are durable from here on.
            volume.sync_dir(layout::GROUPS).map_err(|error| {
                StorageError::from_io("sync the directory", layout::GROUPS, error)
            })?;
            Ok(recovery::read_journals(volume.as_ref(), &named, version))
        })
        .await?
    };
    let (groups, controller) = (groups.clone(), Arc::clone(controller));
    let absorbed = groups.absorb(recovered);
    tokio::spawn(async move {
        if !absorbed.await {
            warn!(
                "journals of former sessions stay in __cluster/journals: not everything in them could be taken over"
            );
            return;
        }
        if let Err(error) = controller.journals_absorbed().await {
            error!(%error, "journals of former sessions could not be removed; the next start takes them over again");
        }
    });
    Ok(())
}

/// Deleted topics take the offsets committed for them along (OF-72).
struct DeletedTopics(Groups);

impl TopicWatcher for DeletedTopics {
    fn deleted(&self, topic: &Arc<Topic>) {
        self.0.submit(Work::TopicDeleted {
            name: topic.name.clone(),
            id: topic.id,
        });
    }
}

fn group_settings(config: &Config) -> actor::Settings {
    actor::Settings {
        group: GroupConfig {
            group_min_session_timeout_ms: config.group_min_session_timeout_ms,
            group_max_session_timeout_ms: config.group_max_session_timeout_ms,
            group_initial_rebalance_delay_ms: config.group_initial_rebalance_delay_ms,
            group_max_size: config.group_max_size,
            offset_metadata_max_bytes: config.offset_metadata_max_bytes,
            offsets_retention_minutes: config.offsets_retention_minutes,
            kaas_group_membership_durable: config.kaas_group_membership_durable,
        },
        file_interval_ms: config.kaas_offsets_file_interval_ms.unsigned_abs(),
        file_rate: u64::from(config.kaas_offsets_file_rate.unsigned_abs()),
        sweep_interval_ms: config.offsets_retention_check_interval_ms.unsigned_abs(),
        journal_max_bytes: config.kaas_journal_max_bytes.unsigned_abs(),
        commit_timeout_ms: u64::from(config.offsets_commit_timeout_ms.unsigned_abs()),
    }
}

fn limits(config: &Config) -> Limits {
    let bytes = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
    let total = bytes(config.kaas_request_memory_total_max_bytes);
    Limits {
        frame: config.socket_request_max_bytes.unsigned_abs() as usize,
        requests_in_flight: config.queued_max_requests.unsigned_abs() as usize,
        request_memory: match config.queued_max_request_bytes {
            queued if queued > 0 => total.min(bytes(queued)),
            _ => total,
        },
        request_memory_per_connection: bytes(config.kaas_request_memory_connection_max_bytes),
        request_memory_per_request: bytes(config.kaas_request_memory_max_bytes),
        response_memory_per_connection: bytes(config.kaas_response_memory_connection_max_bytes),
        idle_ms: u64::try_from(config.connections_max_idle_ms).ok(),
        ..Limits::default()
    }
}

/// Moves the token from time to time; returns when that shows that another process took over.
async fn watch_session(session: Arc<Session>) -> anyhow::Error {
    let mut ticks = tokio::time::interval(TOKEN_INTERVAL);
    loop {
        ticks.tick().await;
        let verified = {
            let session = Arc::clone(&session);
            tokio::task::spawn_blocking(move || session.verify()).await
        };
        match verified {
            Ok(Ok(())) => {}
            Ok(Err(error)) if error.is_fenced() => return fenced(&session, error).await,
            Ok(Err(error)) => warn!(%error, "the session's token could not be moved; tried again"),
            Err(error) => return anyhow::Error::new(error),
        }
    }
}

/// Why the session has ended: its directory is gone if somebody fenced it, and still there if it ended itself.
async fn fenced(session: &Arc<Session>, error: StorageError) -> anyhow::Error {
    let dir = format!("{}/{}", layout::SESSIONS, session.name());
    let volume = Arc::clone(session.volume());
    let is_there = tokio::task::spawn_blocking(move || volume.exists_fresh(&dir)).await;
    let why = match is_there {
        Ok(Ok(true)) => {
            "the volume failed amid a change whose outcome cannot be known, so this process ends its session and stops; \
             mend the volume and start it again: nothing acknowledged is lost"
        }
        _ => {
            "another process has taken over this node id on this volume; this one stops. Give each broker a --node-id of \
             its own"
        }
    };
    anyhow::Error::new(error).context(why)
}

async fn told_to_stop() -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    info!(signal = name, "stopping");
    Ok(())
}

/// Nothing new is accepted; parked requests are answered, files and logs written, connections closed.
async fn stop(broker: &Arc<Broker>, server: &Server, admin: AdminServer) {
    server.stop_accepting();
    broker.groups.stop().await;
    server.stop(STOP_GRACE).await;
    let partitions = Arc::clone(&broker.partitions);
    if tokio::task::spawn_blocking(move || partitions.close())
        .await
        .is_err()
    {
        error!("closing the logs panicked; what was acknowledged is durable");
    }
    admin.stop().await;
}
