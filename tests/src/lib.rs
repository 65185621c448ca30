//! What the suites share: a broker process of their own, raw connections, and scripts.
