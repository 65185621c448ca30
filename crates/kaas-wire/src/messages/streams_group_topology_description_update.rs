//! StreamsGroupTopologyDescriptionUpdate (key 93): a streams client describes its topology.

use crate::ErrorCode;
use crate::message::message;

message! {
    StreamsGroupTopologyDescriptionUpdateRequest: key 93, versions 0..=0, flexible 0..;

    struct StreamsGroupTopologyDescriptionUpdateRequest {
        group_id:             String,              0..;
        member_id:            String,              0..;
        topology_epoch:       i32,                 0..;
        topology_description: TopologyDescription, 0..;
    }

    struct TopologyDescription {
        subtopologies: Vec<TopologyDescriptionSubtopology>, 0..;
        global_stores: Vec<TopologyDescriptionGlobalStore>, 0..;
    }

    struct TopologyDescriptionSubtopology {
        subtopology_id: String,                       0..;
        nodes:          Vec<TopologyDescriptionNode>, 0..;
    }

    struct TopologyDescriptionNode {
        name:          String,         0..;
        node_type:     i8,             0..;
        source_topics: Vec<String>,    0..;
        sink_topic:    Option<String>, 0..;
        stores:        Vec<String>,    0..;
        successors:    Vec<String>,    0..;
    }

    struct TopologyDescriptionGlobalStore {
        source:    TopologyDescriptionNode, 0..;
        processor: TopologyDescriptionNode, 0..;
    }
}

message! {
    StreamsGroupTopologyDescriptionUpdateResponse: key 93, versions 0..=0, flexible 0..;

    struct StreamsGroupTopologyDescriptionUpdateResponse {
        throttle_time_ms: i32,            0..;
        error_code:       ErrorCode,      0..;
        error_message:    Option<String>, 0..;
    }
}
