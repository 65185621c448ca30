//! Kafka's broker keys that have no effect here. They are accepted, so that a file written for Kafka can be used, and
//! named in one warning. Names, types, defaults and what may be altered while running are those of Kafka 4.4.

use super::value::ConfigType;

/// A key of Kafka 4.4.
#[derive(Clone, Copy, Debug)]
pub struct IgnoredKey {
    pub name: &'static str,
    pub kind: ConfigType,
    pub default: Option<&'static str>,
    /// Whether Kafka's tools may alter it while the broker runs. They may here too; it is shown, and has no effect.
    pub dynamic: bool,
}

/// Keys that have no effect for one reason.
pub struct Reason {
    /// A sentence.
    pub why: &'static str,
    pub keys: &'static [IgnoredKey],
}

/// What Kafka takes from a family of keys whose names end as the operator likes.
pub const PREFIXES: &[&str] = &[
    "listener.name.",
    "config.providers.",
    "metrics.context.",
    "rlmm.config.",
    "rsm.config.",
];

/// The key of that name in Kafka 4.4.
pub fn find(name: &str) -> Option<&'static IgnoredKey> {
    REASONS
        .iter()
        .flat_map(|reason| reason.keys)
        .find(|key| key.name == name)
}

/// Whether a key of this name is accepted without effect.
pub fn is_ignored(name: &str) -> bool {
    find(name).is_some()
        || REMOVED.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The names there are, without those of families.
pub fn names() -> impl Iterator<Item = &'static str> {
    REASONS
        .iter()
        .flat_map(|reason| reason.keys)
        .map(|key| key.name)
        .chain(REMOVED.iter().copied())
}

const fn fixed(name: &'static str, kind: ConfigType, default: Option<&'static str>) -> IgnoredKey {
    IgnoredKey {
        name,
        kind,
        default,
        dynamic: false,
    }
}

const fn altered(
    name: &'static str,
    kind: ConfigType,
    default: Option<&'static str>,
) -> IgnoredKey {
    IgnoredKey {
        name,
        kind,
        default,
        dynamic: true,
    }
}

/// The keys of Kafka 4.4, by why they have no effect.
pub const REASONS: &[Reason] = &[
    Reason {
        why: "There is no replication: the volume keeps the records, and a leader finds every acknowledged one there.",
        keys: &[
            fixed(
                "alter.log.dirs.replication.quota.window.num",
                ConfigType::Int,
                Some("11"),
            ),
            fixed(
                "alter.log.dirs.replication.quota.window.size.seconds",
                ConfigType::Int,
                Some("1"),
            ),
            fixed(
                "auto.leader.rebalance.enable",
                ConfigType::Boolean,
                Some("true"),
            ),
            fixed(
                "controlled.shutdown.enable",
                ConfigType::Boolean,
                Some("true"),
            ),
            altered(
                "follower.fetch.last.tiered.offset.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
            altered(
                "follower.replication.throttled.rate",
                ConfigType::Long,
                Some("9223372036854775807"),
            ),
            fixed("inter.broker.listener.name", ConfigType::String, None),
            fixed(
                "leader.imbalance.check.interval.seconds",
                ConfigType::Long,
                Some("300"),
            ),
            altered(
                "leader.replication.throttled.rate",
                ConfigType::Long,
                Some("9223372036854775807"),
            ),
            altered("min.insync.replicas", ConfigType::Int, Some("1")),
            fixed("num.replica.alter.log.dirs.threads", ConfigType::Int, None),
            altered("num.replica.fetchers", ConfigType::Int, Some("1")),
            altered(
                "replica.alter.log.dirs.io.max.bytes.per.second",
                ConfigType::Long,
                Some("9223372036854775807"),
            ),
            fixed("replica.fetch.backoff.ms", ConfigType::Int, Some("1000")),
            fixed("replica.fetch.max.bytes", ConfigType::Int, Some("1048576")),
            fixed("replica.fetch.min.bytes", ConfigType::Int, Some("1")),
            fixed(
                "replica.fetch.response.max.bytes",
                ConfigType::Int,
                Some("10485760"),
            ),
            fixed("replica.fetch.wait.max.ms", ConfigType::Int, Some("500")),
            fixed(
                "replica.high.watermark.checkpoint.interval.ms",
                ConfigType::Long,
                Some("5000"),
            ),
            fixed("replica.lag.time.max.ms", ConfigType::Long, Some("30000")),
            fixed("replica.selector.class", ConfigType::String, None),
            fixed(
                "replica.socket.receive.buffer.bytes",
                ConfigType::Int,
                Some("65536"),
            ),
            fixed("replica.socket.timeout.ms", ConfigType::Int, Some("30000")),
            fixed("replication.quota.window.num", ConfigType::Int, Some("11")),
            fixed(
                "replication.quota.window.size.seconds",
                ConfigType::Int,
                Some("1"),
            ),
            altered(
                "unclean.leader.election.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
            fixed(
                "unclean.leader.election.interval.ms",
                ConfigType::Long,
                Some("300000"),
            ),
        ],
    },
    Reason {
        why: "There is no KRaft quorum: a controller is elected on the volume.",
        keys: &[
            fixed(
                "broker.heartbeat.interval.ms",
                ConfigType::Int,
                Some("2000"),
            ),
            fixed("controller.listener.names", ConfigType::List, None),
            fixed(
                "controller.performance.always.log.threshold.ms",
                ConfigType::Long,
                Some("2000"),
            ),
            fixed(
                "controller.performance.sample.period.ms",
                ConfigType::Long,
                Some("60000"),
            ),
            fixed(
                "controller.quorum.append.linger.ms",
                ConfigType::Int,
                Some("25"),
            ),
            fixed(
                "controller.quorum.auto.join.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
            fixed(
                "controller.quorum.bootstrap.servers",
                ConfigType::List,
                Some(""),
            ),
            fixed(
                "controller.quorum.election.backoff.max.ms",
                ConfigType::Int,
                Some("1000"),
            ),
            fixed(
                "controller.quorum.election.timeout.ms",
                ConfigType::Int,
                Some("1000"),
            ),
            fixed(
                "controller.quorum.fetch.max.bytes",
                ConfigType::Int,
                Some("1048576"),
            ),
            fixed(
                "controller.quorum.fetch.snapshot.max.bytes",
                ConfigType::Int,
                Some("1048576"),
            ),
            fixed(
                "controller.quorum.fetch.timeout.ms",
                ConfigType::Int,
                Some("2000"),
            ),
            fixed(
                "controller.quorum.request.timeout.ms",
                ConfigType::Int,
                Some("2000"),
            ),
            fixed(
                "controller.quorum.retry.backoff.ms",
                ConfigType::Int,
                Some("20"),
            ),
            fixed("controller.quorum.voters", ConfigType::List, Some("")),
            fixed(
                "controller.socket.timeout.ms",
                ConfigType::Int,
                Some("30000"),
            ),
            fixed("early.start.listeners", ConfigType::List, None),
            fixed(
                "initial.broker.registration.timeout.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed(
                "internal.metadata.delete.delay.millis",
                ConfigType::Long,
                Some("60000"),
            ),
            fixed("internal.metadata.log.segment.bytes", ConfigType::Int, None),
            fixed(
                "internal.metadata.max.batch.size.in.bytes",
                ConfigType::Int,
                Some("8388608"),
            ),
            fixed("metadata.log.dir", ConfigType::String, None),
            fixed(
                "metadata.log.max.record.bytes.between.snapshots",
                ConfigType::Long,
                Some("20971520"),
            ),
            fixed(
                "metadata.log.max.snapshot.interval.ms",
                ConfigType::Long,
                Some("3600000"),
            ),
            fixed(
                "metadata.log.segment.bytes",
                ConfigType::Int,
                Some("1073741824"),
            ),
            fixed(
                "metadata.log.segment.ms",
                ConfigType::Long,
                Some("604800000"),
            ),
            fixed(
                "metadata.max.idle.interval.ms",
                ConfigType::Int,
                Some("500"),
            ),
            fixed(
                "metadata.max.retention.bytes",
                ConfigType::Long,
                Some("104857600"),
            ),
            fixed(
                "metadata.max.retention.ms",
                ConfigType::Long,
                Some("604800000"),
            ),
            fixed("process.roles", ConfigType::List, None),
            fixed(
                "server.max.startup.time.ms",
                ConfigType::Long,
                Some("9223372036854775807"),
            ),
            fixed(
                "unstable.api.versions.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
            fixed(
                "unstable.feature.versions.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
        ],
    },
    Reason {
        why: "There are no internal topics: groups and offsets are files of the volume.",
        keys: &[
            fixed(
                "group.coordinator.append.linger.ms",
                ConfigType::Int,
                Some("-1"),
            ),
            fixed(
                "group.coordinator.background.threads",
                ConfigType::Int,
                Some("2"),
            ),
            altered(
                "group.coordinator.cached.buffer.max.bytes",
                ConfigType::Int,
                Some("1048588"),
            ),
            fixed(
                "group.coordinator.rebalance.protocols",
                ConfigType::List,
                Some("classic,consumer,streams"),
            ),
            fixed("group.coordinator.threads", ConfigType::Int, Some("4")),
            fixed("offsets.load.buffer.size", ConfigType::Int, Some("5242880")),
            fixed(
                "offsets.topic.compression.codec",
                ConfigType::Int,
                Some("0"),
            ),
            fixed("offsets.topic.num.partitions", ConfigType::Int, Some("50")),
            fixed(
                "offsets.topic.replication.factor",
                ConfigType::Short,
                Some("3"),
            ),
            fixed(
                "offsets.topic.segment.bytes",
                ConfigType::Int,
                Some("104857600"),
            ),
            fixed(
                "share.coordinator.append.linger.ms",
                ConfigType::Int,
                Some("-1"),
            ),
            altered(
                "share.coordinator.cached.buffer.max.bytes",
                ConfigType::Int,
                Some("1048588"),
            ),
            fixed(
                "share.coordinator.cold.partition.snapshot.interval.ms",
                ConfigType::Int,
                Some("300000"),
            ),
            fixed(
                "share.coordinator.load.buffer.size",
                ConfigType::Int,
                Some("5242880"),
            ),
            fixed(
                "share.coordinator.snapshot.update.records.per.snapshot",
                ConfigType::Int,
                Some("500"),
            ),
            fixed(
                "share.coordinator.state.topic.compression.codec",
                ConfigType::Int,
                Some("0"),
            ),
            fixed(
                "share.coordinator.state.topic.min.isr",
                ConfigType::Short,
                Some("2"),
            ),
            fixed(
                "share.coordinator.state.topic.num.partitions",
                ConfigType::Int,
                Some("50"),
            ),
            fixed(
                "share.coordinator.state.topic.prune.interval.ms",
                ConfigType::Int,
                Some("300000"),
            ),
            fixed(
                "share.coordinator.state.topic.replication.factor",
                ConfigType::Short,
                Some("3"),
            ),
            fixed(
                "share.coordinator.state.topic.segment.bytes",
                ConfigType::Int,
                Some("104857600"),
            ),
            fixed("share.coordinator.threads", ConfigType::Int, Some("1")),
            fixed(
                "share.coordinator.write.timeout.ms",
                ConfigType::Int,
                Some("5000"),
            ),
            fixed(
                "transaction.state.log.load.buffer.size",
                ConfigType::Int,
                Some("5242880"),
            ),
            fixed("transaction.state.log.min.isr", ConfigType::Int, Some("2")),
            fixed(
                "transaction.state.log.num.partitions",
                ConfigType::Int,
                Some("50"),
            ),
            fixed(
                "transaction.state.log.replication.factor",
                ConfigType::Short,
                Some("3"),
            ),
            fixed(
                "transaction.state.log.segment.bytes",
                ConfigType::Int,
                Some("104857600"),
            ),
        ],
    },
    Reason {
        why: "Consumer (KIP-848), share and streams groups are not served.",
        keys: &[
            altered(
                "errors.deadletterqueue.auto.create.topics.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
            altered(
                "errors.deadletterqueue.topic.name.prefix",
                ConfigType::String,
                Some("dlq."),
            ),
            altered(
                "group.consumer.assignment.interval.ms",
                ConfigType::Int,
                Some("1000"),
            ),
            altered(
                "group.consumer.assignor.offload.enable",
                ConfigType::Boolean,
                Some("true"),
            ),
            fixed(
                "group.consumer.assignors",
                ConfigType::List,
                Some("uniform,range"),
            ),
            fixed(
                "group.consumer.heartbeat.interval.ms",
                ConfigType::Int,
                Some("5000"),
            ),
            fixed(
                "group.consumer.max.assignment.interval.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.consumer.max.heartbeat.interval.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.consumer.max.session.timeout.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed(
                "group.consumer.max.size",
                ConfigType::Int,
                Some("2147483647"),
            ),
            fixed(
                "group.consumer.migration.policy",
                ConfigType::String,
                Some("bidirectional"),
            ),
            fixed(
                "group.consumer.min.assignment.interval.ms",
                ConfigType::Int,
                Some("0"),
            ),
            fixed(
                "group.consumer.min.heartbeat.interval.ms",
                ConfigType::Int,
                Some("5000"),
            ),
            fixed(
                "group.consumer.min.session.timeout.ms",
                ConfigType::Int,
                Some("45000"),
            ),
            fixed(
                "group.consumer.regex.refresh.interval.ms",
                ConfigType::Int,
                Some("600000"),
            ),
            fixed(
                "group.consumer.session.timeout.ms",
                ConfigType::Int,
                Some("45000"),
            ),
            altered(
                "group.share.assignment.interval.ms",
                ConfigType::Int,
                Some("1000"),
            ),
            altered(
                "group.share.assignor.offload.enable",
                ConfigType::Boolean,
                Some("true"),
            ),
            fixed("group.share.assignors", ConfigType::List, Some("simple")),
            fixed(
                "group.share.delivery.count.limit",
                ConfigType::Int,
                Some("5"),
            ),
            fixed(
                "group.share.dlq.manager.class.name",
                ConfigType::String,
                Some("org.apache.kafka.server.share.dlq.DefaultShareGroupDLQManager"),
            ),
            fixed(
                "group.share.heartbeat.interval.ms",
                ConfigType::Int,
                Some("5000"),
            ),
            fixed(
                "group.share.initialize.retry.interval.ms",
                ConfigType::Int,
                Some("30000"),
            ),
            fixed(
                "group.share.max.assignment.interval.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.share.max.delivery.count.limit",
                ConfigType::Int,
                Some("10"),
            ),
            fixed(
                "group.share.max.heartbeat.interval.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.share.max.partition.max.record.locks",
                ConfigType::Int,
                Some("4000"),
            ),
            fixed(
                "group.share.max.record.lock.duration.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed(
                "group.share.max.session.timeout.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed(
                "group.share.max.share.sessions",
                ConfigType::Int,
                Some("2000"),
            ),
            fixed("group.share.max.size", ConfigType::Int, Some("200")),
            fixed(
                "group.share.min.assignment.interval.ms",
                ConfigType::Int,
                Some("0"),
            ),
            fixed(
                "group.share.min.delivery.count.limit",
                ConfigType::Int,
                Some("2"),
            ),
            fixed(
                "group.share.min.heartbeat.interval.ms",
                ConfigType::Int,
                Some("5000"),
            ),
            fixed(
                "group.share.min.partition.max.record.locks",
                ConfigType::Int,
                Some("100"),
            ),
            fixed(
                "group.share.min.record.lock.duration.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.share.min.session.timeout.ms",
                ConfigType::Int,
                Some("45000"),
            ),
            fixed(
                "group.share.partition.max.record.locks",
                ConfigType::Int,
                Some("2000"),
            ),
            fixed(
                "group.share.persister.class.name",
                ConfigType::String,
                Some("org.apache.kafka.server.share.persister.DefaultStatePersister"),
            ),
            fixed(
                "group.share.record.lock.duration.ms",
                ConfigType::Int,
                Some("30000"),
            ),
            fixed(
                "group.share.session.timeout.ms",
                ConfigType::Int,
                Some("45000"),
            ),
            fixed(
                "group.streams.acceptable.recovery.lag",
                ConfigType::Long,
                Some("10000"),
            ),
            altered(
                "group.streams.assignment.interval.ms",
                ConfigType::Int,
                Some("1000"),
            ),
            altered(
                "group.streams.assignor.offload.enable",
                ConfigType::Boolean,
                Some("true"),
            ),
            fixed("group.streams.assignors", ConfigType::List, Some("sticky")),
            fixed(
                "group.streams.heartbeat.interval.ms",
                ConfigType::Int,
                Some("5000"),
            ),
            fixed(
                "group.streams.initial.rebalance.delay.ms",
                ConfigType::Int,
                Some("3000"),
            ),
            fixed(
                "group.streams.max.assignment.interval.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.streams.max.heartbeat.interval.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.streams.max.session.timeout.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed(
                "group.streams.max.size",
                ConfigType::Int,
                Some("2147483647"),
            ),
            fixed(
                "group.streams.max.standby.replicas",
                ConfigType::Int,
                Some("2"),
            ),
            fixed(
                "group.streams.max.warmup.replicas",
                ConfigType::Int,
                Some("20"),
            ),
            fixed(
                "group.streams.min.assignment.interval.ms",
                ConfigType::Int,
                Some("0"),
            ),
            fixed(
                "group.streams.min.heartbeat.interval.ms",
                ConfigType::Int,
                Some("5000"),
            ),
            fixed(
                "group.streams.min.session.timeout.ms",
                ConfigType::Int,
                Some("45000"),
            ),
            fixed(
                "group.streams.min.task.offset.interval.ms",
                ConfigType::Int,
                Some("15000"),
            ),
            fixed(
                "group.streams.num.standby.replicas",
                ConfigType::Int,
                Some("0"),
            ),
            fixed(
                "group.streams.num.warmup.replicas",
                ConfigType::Int,
                Some("2"),
            ),
            fixed(
                "group.streams.rack.aware.assignment.tags",
                ConfigType::List,
                Some(""),
            ),
            fixed(
                "group.streams.session.timeout.ms",
                ConfigType::Int,
                Some("45000"),
            ),
            fixed(
                "group.streams.task.offset.interval.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed(
                "group.streams.topology.description.plugin.class",
                ConfigType::Class,
                None,
            ),
            fixed(
                "max.request.partition.size.limit",
                ConfigType::Int,
                Some("2000"),
            ),
            fixed(
                "share.fetch.purgatory.purge.interval.requests",
                ConfigType::Int,
                Some("1000"),
            ),
        ],
    },
    Reason {
        why: "Transactions are not served.",
        keys: &[
            fixed(
                "add.partitions.to.txn.retry.backoff.max.ms",
                ConfigType::Int,
                Some("100"),
            ),
            fixed(
                "add.partitions.to.txn.retry.backoff.ms",
                ConfigType::Int,
                Some("20"),
            ),
            fixed(
                "producer.id.expiration.check.interval.ms",
                ConfigType::Int,
                Some("600000"),
            ),
            fixed(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms",
                ConfigType::Int,
                Some("10000"),
            ),
            altered(
                "transaction.partition.verification.enable",
                ConfigType::Boolean,
                Some("true"),
            ),
            fixed(
                "transaction.remove.expired.transaction.cleanup.interval.ms",
                ConfigType::Int,
                Some("3600000"),
            ),
            fixed(
                "transaction.two.phase.commit.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
            fixed(
                "transactional.id.expiration.ms",
                ConfigType::Int,
                Some("604800000"),
            ),
        ],
    },
    Reason {
        why: "Clients connect in plain text, without authentication or authorization.",
        keys: &[
            fixed("authorizer.class.name", ConfigType::String, Some("")),
            fixed(
                "connection.failed.authentication.delay.ms",
                ConfigType::Int,
                Some("100"),
            ),
            fixed("connections.max.reauth.ms", ConfigType::Long, Some("0")),
            fixed(
                "delegation.token.expiry.check.interval.ms",
                ConfigType::Long,
                Some("3600000"),
            ),
            fixed(
                "delegation.token.expiry.time.ms",
                ConfigType::Long,
                Some("86400000"),
            ),
            fixed(
                "delegation.token.max.lifetime.ms",
                ConfigType::Long,
                Some("604800000"),
            ),
            fixed("delegation.token.secret.key", ConfigType::Password, None),
            altered(
                "listener.security.protocol.map",
                ConfigType::String,
                Some("SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"),
            ),
            altered(
                "principal.builder.class",
                ConfigType::Class,
                Some("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"),
            ),
            fixed(
                "sasl.client.callback.handler.class",
                ConfigType::Class,
                None,
            ),
            altered("sasl.enabled.mechanisms", ConfigType::List, Some("GSSAPI")),
            altered("sasl.jaas.config", ConfigType::Password, None),
            altered(
                "sasl.kerberos.kinit.cmd",
                ConfigType::String,
                Some("/usr/bin/kinit"),
            ),
            altered(
                "sasl.kerberos.min.time.before.relogin",
                ConfigType::Long,
                Some("60000"),
            ),
            altered(
                "sasl.kerberos.principal.to.local.rules",
                ConfigType::List,
                Some("DEFAULT"),
            ),
            altered("sasl.kerberos.service.name", ConfigType::String, None),
            altered(
                "sasl.kerberos.ticket.renew.jitter",
                ConfigType::Double,
                Some("0.05"),
            ),
            altered(
                "sasl.kerberos.ticket.renew.window.factor",
                ConfigType::Double,
                Some("0.8"),
            ),
            fixed("sasl.login.callback.handler.class", ConfigType::Class, None),
            fixed("sasl.login.class", ConfigType::Class, None),
            fixed("sasl.login.connect.timeout.ms", ConfigType::Int, None),
            fixed("sasl.login.read.timeout.ms", ConfigType::Int, None),
            altered(
                "sasl.login.refresh.buffer.seconds",
                ConfigType::Short,
                Some("300"),
            ),
            altered(
                "sasl.login.refresh.min.period.seconds",
                ConfigType::Short,
                Some("60"),
            ),
            altered(
                "sasl.login.refresh.window.factor",
                ConfigType::Double,
                Some("0.8"),
            ),
            altered(
                "sasl.login.refresh.window.jitter",
                ConfigType::Double,
                Some("0.05"),
            ),
            fixed(
                "sasl.login.retry.backoff.max.ms",
                ConfigType::Long,
                Some("10000"),
            ),
            fixed("sasl.login.retry.backoff.ms", ConfigType::Long, Some("100")),
            fixed(
                "sasl.mechanism.controller.protocol",
                ConfigType::String,
                Some("GSSAPI"),
            ),
            altered(
                "sasl.mechanism.inter.broker.protocol",
                ConfigType::String,
                Some("GSSAPI"),
            ),
            fixed(
                "sasl.oauthbearer.allow.unverified.audience",
                ConfigType::Boolean,
                Some("false"),
            ),
            fixed(
                "sasl.oauthbearer.allow.unverified.issuer",
                ConfigType::Boolean,
                Some("false"),
            ),
            fixed(
                "sasl.oauthbearer.assertion.algorithm",
                ConfigType::String,
                Some("RS256"),
            ),
            fixed(
                "sasl.oauthbearer.assertion.claim.aud",
                ConfigType::String,
                None,
            ),
            fixed(
                "sasl.oauthbearer.assertion.claim.exp.seconds",
                ConfigType::Int,
                Some("300"),
            ),
            fixed(
                "sasl.oauthbearer.assertion.claim.iss",
                ConfigType::String,
                None,
            ),
            fixed(
                "sasl.oauthbearer.assertion.claim.jti.include",
                ConfigType::Boolean,
                Some("false"),
            ),
            fixed(
                "sasl.oauthbearer.assertion.claim.nbf.seconds",
                ConfigType::Int,
                Some("60"),
            ),
            fixed(
                "sasl.oauthbearer.assertion.claim.sub",
                ConfigType::String,
                None,
            ),
            fixed("sasl.oauthbearer.assertion.file", ConfigType::String, None),
            fixed(
                "sasl.oauthbearer.assertion.private.key.file",
                ConfigType::String,
                None,
            ),
            fixed(
                "sasl.oauthbearer.assertion.private.key.passphrase",
                ConfigType::Password,
                None,
            ),
            fixed(
                "sasl.oauthbearer.assertion.template.file",
                ConfigType::String,
                None,
            ),
            fixed(
                "sasl.oauthbearer.client.credentials.client.id",
                ConfigType::String,
                None,
            ),
            fixed(
                "sasl.oauthbearer.client.credentials.client.secret",
                ConfigType::Password,
                None,
            ),
            fixed(
                "sasl.oauthbearer.clock.skew.seconds",
                ConfigType::Int,
                Some("30"),
            ),
            fixed(
                "sasl.oauthbearer.expected.audience",
                ConfigType::List,
                Some(""),
            ),
            fixed("sasl.oauthbearer.expected.issuer", ConfigType::String, None),
            fixed(
                "sasl.oauthbearer.jwks.endpoint.refresh.ms",
                ConfigType::Long,
                Some("3600000"),
            ),
            fixed(
                "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
                ConfigType::Long,
                Some("10000"),
            ),
            fixed(
                "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
                ConfigType::Long,
                Some("100"),
            ),
            fixed(
                "sasl.oauthbearer.jwks.endpoint.url",
                ConfigType::String,
                None,
            ),
            fixed(
                "sasl.oauthbearer.jwt.retriever.class",
                ConfigType::Class,
                Some("org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"),
            ),
            fixed(
                "sasl.oauthbearer.jwt.validator.class",
                ConfigType::Class,
                Some("org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"),
            ),
            fixed("sasl.oauthbearer.scope", ConfigType::String, None),
            fixed(
                "sasl.oauthbearer.scope.claim.name",
                ConfigType::String,
                Some("scope"),
            ),
            fixed(
                "sasl.oauthbearer.sub.claim.name",
                ConfigType::String,
                Some("sub"),
            ),
            fixed(
                "sasl.oauthbearer.token.endpoint.url",
                ConfigType::String,
                None,
            ),
            fixed(
                "sasl.server.callback.handler.class",
                ConfigType::Class,
                None,
            ),
            fixed(
                "sasl.server.max.receive.size",
                ConfigType::Int,
                Some("524288"),
            ),
            fixed(
                "security.inter.broker.protocol",
                ConfigType::String,
                Some("PLAINTEXT"),
            ),
            fixed("security.providers", ConfigType::String, None),
            fixed("ssl.allow.dn.changes", ConfigType::Boolean, Some("false")),
            fixed("ssl.allow.san.changes", ConfigType::Boolean, Some("false")),
            altered("ssl.cipher.suites", ConfigType::List, Some("")),
            altered("ssl.client.auth", ConfigType::String, Some("none")),
            altered(
                "ssl.enabled.protocols",
                ConfigType::List,
                Some("TLSv1.2,TLSv1.3"),
            ),
            altered(
                "ssl.endpoint.identification.algorithm",
                ConfigType::String,
                Some("https"),
            ),
            altered("ssl.engine.factory.class", ConfigType::Class, None),
            altered("ssl.key.password", ConfigType::Password, None),
            altered(
                "ssl.keymanager.algorithm",
                ConfigType::String,
                Some("SunX509"),
            ),
            altered("ssl.keystore.certificate.chain", ConfigType::Password, None),
            altered("ssl.keystore.key", ConfigType::Password, None),
            altered("ssl.keystore.location", ConfigType::String, None),
            altered("ssl.keystore.password", ConfigType::Password, None),
            altered("ssl.keystore.type", ConfigType::String, Some("JKS")),
            fixed(
                "ssl.principal.mapping.rules",
                ConfigType::String,
                Some("DEFAULT"),
            ),
            altered("ssl.protocol", ConfigType::String, Some("TLSv1.3")),
            altered("ssl.provider", ConfigType::String, None),
            altered("ssl.secure.random.implementation", ConfigType::String, None),
            altered(
                "ssl.trustmanager.algorithm",
                ConfigType::String,
                Some("PKIX"),
            ),
            altered("ssl.truststore.certificates", ConfigType::Password, None),
            altered("ssl.truststore.location", ConfigType::String, None),
            altered("ssl.truststore.password", ConfigType::Password, None),
            altered("ssl.truststore.type", ConfigType::String, Some("JKS")),
        ],
    },
    Reason {
        why: "There are no quotas.",
        keys: &[
            fixed("client.quota.callback.class", ConfigType::Class, None),
            fixed("controller.quota.window.num", ConfigType::Int, Some("11")),
            fixed(
                "controller.quota.window.size.seconds",
                ConfigType::Int,
                Some("1"),
            ),
            altered(
                "max.connection.creation.rate",
                ConfigType::Int,
                Some("2147483647"),
            ),
            fixed("quota.window.num", ConfigType::Int, Some("11")),
            fixed("quota.window.size.seconds", ConfigType::Int, Some("1")),
        ],
    },
    Reason {
        why: "There is no tiered storage.",
        keys: &[
            altered("log.local.retention.bytes", ConfigType::Long, Some("-2")),
            altered("log.local.retention.ms", ConfigType::Long, Some("-2")),
            altered("log.remote.copy.lag.bytes", ConfigType::Long, Some("-1")),
            altered("log.remote.copy.lag.ms", ConfigType::Long, Some("0")),
            altered("remote.fetch.max.wait.ms", ConfigType::Int, Some("500")),
            altered(
                "remote.list.offsets.request.timeout.ms",
                ConfigType::Long,
                Some("30000"),
            ),
            altered(
                "remote.log.index.file.cache.total.size.bytes",
                ConfigType::Long,
                Some("1073741824"),
            ),
            fixed(
                "remote.log.index.file.cache.ttl.ms",
                ConfigType::Long,
                Some("900000"),
            ),
            altered(
                "remote.log.manager.copier.thread.pool.size",
                ConfigType::Int,
                Some("10"),
            ),
            altered(
                "remote.log.manager.copy.max.bytes.per.second",
                ConfigType::Long,
                Some("9223372036854775807"),
            ),
            fixed(
                "remote.log.manager.copy.quota.window.num",
                ConfigType::Int,
                Some("11"),
            ),
            fixed(
                "remote.log.manager.copy.quota.window.size.seconds",
                ConfigType::Int,
                Some("1"),
            ),
            altered(
                "remote.log.manager.expiration.thread.pool.size",
                ConfigType::Int,
                Some("10"),
            ),
            altered(
                "remote.log.manager.fetch.max.bytes.per.second",
                ConfigType::Long,
                Some("9223372036854775807"),
            ),
            fixed(
                "remote.log.manager.fetch.quota.window.num",
                ConfigType::Int,
                Some("11"),
            ),
            fixed(
                "remote.log.manager.fetch.quota.window.size.seconds",
                ConfigType::Int,
                Some("1"),
            ),
            altered(
                "remote.log.manager.follower.thread.pool.size",
                ConfigType::Int,
                Some("2"),
            ),
            fixed(
                "remote.log.manager.task.interval.ms",
                ConfigType::Long,
                Some("30000"),
            ),
            fixed(
                "remote.log.manager.task.retry.backoff.max.ms",
                ConfigType::Long,
                Some("30000"),
            ),
            fixed(
                "remote.log.manager.task.retry.backoff.ms",
                ConfigType::Long,
                Some("500"),
            ),
            fixed(
                "remote.log.manager.task.retry.jitter",
                ConfigType::Double,
                Some("0.2"),
            ),
            fixed(
                "remote.log.manager.thread.pool.size",
                ConfigType::Int,
                Some("2"),
            ),
            fixed(
                "remote.log.metadata.custom.metadata.max.bytes",
                ConfigType::Int,
                Some("128"),
            ),
            fixed(
                "remote.log.metadata.manager.class.name",
                ConfigType::String,
                Some(
                    "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
                ),
            ),
            fixed(
                "remote.log.metadata.manager.class.path",
                ConfigType::String,
                None,
            ),
            fixed(
                "remote.log.metadata.manager.impl.prefix",
                ConfigType::String,
                Some("rlmm.config."),
            ),
            fixed(
                "remote.log.metadata.manager.listener.name",
                ConfigType::String,
                None,
            ),
            fixed(
                "remote.log.reader.max.pending.tasks",
                ConfigType::Int,
                Some("100"),
            ),
            altered("remote.log.reader.threads", ConfigType::Int, Some("10")),
            fixed(
                "remote.log.storage.manager.class.name",
                ConfigType::String,
                None,
            ),
            fixed(
                "remote.log.storage.manager.class.path",
                ConfigType::String,
                None,
            ),
            fixed(
                "remote.log.storage.manager.impl.prefix",
                ConfigType::String,
                Some("rsm.config."),
            ),
            fixed(
                "remote.log.storage.system.enable",
                ConfigType::Boolean,
                Some("false"),
            ),
        ],
    },
    Reason {
        why: "Batches are stored as the producer sent them.",
        keys: &[
            altered("compression.gzip.level", ConfigType::Int, Some("-1")),
            altered("compression.lz4.level", ConfigType::Int, Some("9")),
            altered("compression.type", ConfigType::String, Some("producer")),
            altered("compression.zstd.level", ConfigType::Int, Some("3")),
            altered("log.preallocate", ConfigType::Boolean, Some("false")),
            altered(
                "max.decompressed.message.bytes",
                ConfigType::Int,
                Some("2147483639"),
            ),
        ],
    },
    Reason {
        why: "There is no cleaner with threads and buffers of its own.",
        keys: &[
            altered("log.cleaner.backoff.ms", ConfigType::Long, Some("15000")),
            altered(
                "log.cleaner.dedupe.buffer.size",
                ConfigType::Long,
                Some("134217728"),
            ),
            fixed("log.cleaner.enable", ConfigType::Boolean, Some("true")),
            altered(
                "log.cleaner.io.buffer.load.factor",
                ConfigType::Double,
                Some("0.9"),
            ),
            altered(
                "log.cleaner.io.buffer.size",
                ConfigType::Int,
                Some("524288"),
            ),
            altered(
                "log.cleaner.io.max.bytes.per.second",
                ConfigType::Double,
                Some("1.7976931348623157E308"),
            ),
            altered("log.cleaner.threads", ConfigType::Int, Some("1")),
        ],
    },
    Reason {
        why: "Threads and buffers are few and shared (`kaas.worker.threads`).",
        keys: &[
            altered("background.threads", ConfigType::Int, Some("10")),
            fixed(
                "delete.records.purgatory.purge.interval.requests",
                ConfigType::Int,
                Some("1"),
            ),
            fixed(
                "fetch.purgatory.purge.interval.requests",
                ConfigType::Int,
                Some("1000"),
            ),
            altered("num.io.threads", ConfigType::Int, Some("8")),
            altered("num.network.threads", ConfigType::Int, Some("3")),
            altered(
                "num.recovery.threads.per.data.dir",
                ConfigType::Int,
                Some("2"),
            ),
            fixed(
                "producer.purgatory.purge.interval.requests",
                ConfigType::Int,
                Some("1000"),
            ),
            fixed(
                "socket.connection.setup.timeout.max.ms",
                ConfigType::Long,
                Some("30000"),
            ),
            fixed(
                "socket.connection.setup.timeout.ms",
                ConfigType::Long,
                Some("10000"),
            ),
            fixed("socket.listen.backlog.size", ConfigType::Int, Some("50")),
            fixed(
                "socket.receive.buffer.bytes",
                ConfigType::Int,
                Some("102400"),
            ),
            fixed("socket.send.buffer.bytes", ConfigType::Int, Some("102400")),
        ],
    },
    Reason {
        why: "There are no metrics reporters, plug-ins and class names of a JVM; metrics are served over HTTP (`kaas.admin.listener`).",
        keys: &[
            fixed("alter.config.policy.class.name", ConfigType::Class, None),
            altered("config.providers", ConfigType::List, Some("")),
            fixed("create.topic.policy.class.name", ConfigType::Class, None),
            fixed(
                "kafka.metrics.polling.interval.secs",
                ConfigType::Int,
                Some("10"),
            ),
            fixed("kafka.metrics.reporters", ConfigType::List, Some("")),
            altered(
                "metric.reporters",
                ConfigType::List,
                Some("org.apache.kafka.common.metrics.JmxReporter"),
            ),
            fixed("metrics.num.samples", ConfigType::Int, Some("2")),
            fixed("metrics.recording.level", ConfigType::String, Some("INFO")),
            fixed("metrics.sample.window.ms", ConfigType::Long, Some("30000")),
            fixed("telemetry.max.bytes", ConfigType::Int, Some("1048576")),
        ],
    },
    Reason {
        why: "Nothing here corresponds to them.",
        keys: &[
            fixed("broker.rack", ConfigType::String, None),
            altered("cordoned.log.dirs", ConfigType::List, Some("")),
            fixed(
                "log.dir.failure.timeout.ms",
                ConfigType::Long,
                Some("30000"),
            ),
            fixed(
                "log.flush.offset.checkpoint.interval.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed(
                "log.flush.start.offset.checkpoint.interval.ms",
                ConfigType::Int,
                Some("60000"),
            ),
            fixed("log.initial.task.delay.ms", ConfigType::Long, Some("30000")),
            fixed("request.timeout.ms", ConfigType::Int, Some("30000")),
        ],
    },
];

/// Keys of Kafka 3 that Kafka 4 no longer has.
pub const REMOVED: &[&str] = &[
    "auto.include.jmx.reporter",
    "broker.id.generation.enable",
    "control.plane.listener.name",
    "controlled.shutdown.max.retries",
    "controlled.shutdown.retry.backoff.ms",
    "delegation.token.master.key",
    "eligible.leader.replicas.enable",
    "group.coordinator.new.enable",
    "group.share.enable",
    "group.share.max.groups",
    "inter.broker.protocol.version",
    "leader.imbalance.per.broker.percentage",
    "log.message.downconversion.enable",
    "log.message.format.version",
    "log.message.timestamp.difference.max.ms",
    "metadata.log.segment.min.bytes",
    "offsets.commit.required.acks",
    "password.encoder.cipher.algorithm",
    "password.encoder.iterations",
    "password.encoder.key.length",
    "password.encoder.keyfactory.algorithm",
    "password.encoder.old.secret",
    "password.encoder.secret",
    "reserved.broker.max.id",
    "zookeeper.clientCnxnSocket",
    "zookeeper.connect",
    "zookeeper.connection.timeout.ms",
    "zookeeper.max.in.flight.requests",
    "zookeeper.metadata.migration.enable",
    "zookeeper.metadata.migration.min.batch.size",
    "zookeeper.session.timeout.ms",
    "zookeeper.set.acl",
    "zookeeper.ssl.cipher.suites",
    "zookeeper.ssl.client.enable",
    "zookeeper.ssl.crl.enable",
    "zookeeper.ssl.enabled.protocols",
    "zookeeper.ssl.endpoint.identification.algorithm",
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.keystore.password",
    "zookeeper.ssl.keystore.type",
    "zookeeper.ssl.ocsp.enable",
    "zookeeper.ssl.protocol",
    "zookeeper.ssl.truststore.location",
    "zookeeper.ssl.truststore.password",
    "zookeeper.ssl.truststore.type",
];
