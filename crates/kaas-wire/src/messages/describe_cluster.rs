//! DescribeCluster (key 60): the brokers or controllers of the cluster.

use crate::ErrorCode;
use crate::message::message;

message! {
    DescribeClusterRequest: key 60, versions 0..=2, flexible 0..;

    struct DescribeClusterRequest {
        include_cluster_authorized_operations: bool, 0..;
        endpoint_type:                         i8,   1.., = 1;
        include_fenced_brokers:                bool, 2..;
    }
}

message! {
    DescribeClusterResponse: key 60, versions 0..=2, flexible 0..;

    struct DescribeClusterResponse {
        throttle_time_ms:              i32,                        0..;
        error_code:                    ErrorCode,                  0..;
        error_message:                 Option<String>,             0..;
        endpoint_type:                 i8,                         1.., = 1;
        cluster_id:                    String,                     0..;
        controller_id:                 i32,                        0.., = -1;
        brokers:                       Vec<DescribeClusterBroker>, 0..;
        cluster_authorized_operations: i32,                        0.., = i32::MIN;
    }

    struct DescribeClusterBroker {
        broker_id: i32,            0..;
        host:      String,         0..;
        port:      i32,            0..;
        rack:      Option<String>, 0..;
        is_fenced: bool,           2..;
    }
}
