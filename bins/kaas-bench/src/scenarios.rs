//! One scenario, one file. Each takes its settings, sets up what it needs, measures, and checks.

pub mod commit;
pub mod failover;
pub mod fetch_offsets;
pub mod join_storm;
pub mod list_describe;
pub mod produce_fetch;
pub mod rolling;
pub mod served;
pub mod steady;

use std::rc::Rc;

use crate::cluster::Cluster;
use crate::load::Crew;
use crate::measure::Measure;
use crate::member::{Member, check_stable};

/// Members that are connected to their coordinators and have not joined, group by group.
async fn members_of(
    cluster: &mut Cluster,
    prefix: &str,
    topic: &str,
    groups: usize,
    members: usize,
) -> anyhow::Result<Vec<Member>> {
    let ids: Vec<String> = (0..groups)
        .map(|group| format!("{prefix}-{group}"))
        .collect();
    let coordinators = cluster.coordinators(&ids).await?;
    let topic: Rc<str> = topic.into();
    let mut all = Vec::with_capacity(groups * members);
    for (id, coordinator) in ids.iter().zip(&coordinators) {
        let group: Rc<str> = id.as_str().into();
        for _ in 0..members {
            all.push(Member::new(
                cluster.open(coordinator).await?,
                group.clone(),
                topic.clone(),
            ));
        }
    }
    Ok(all)
}

/// Members of stable groups, group by group.
async fn stable_groups(
    cluster: &mut Cluster,
    prefix: &str,
    topic: &str,
    groups: usize,
    members: usize,
    measure: &Rc<Measure>,
) -> anyhow::Result<Vec<Member>> {
    let mut crew = Crew::new();
    for mut member in members_of(cluster, prefix, topic, groups, members).await? {
        let joining = measure.clone();
        crew.add(measure, async move {
            member.join(&joining).await?;
            Ok(member)
        });
    }
    let stable = crew.finish().await?;
    for group in stable.chunks(members) {
        check_stable(group.iter(), measure);
    }
    Ok(stable)
}
