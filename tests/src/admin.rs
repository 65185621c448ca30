//! Asks the admin port.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::time::SOON;

/// An answer over HTTP.
pub struct Page {
    pub status: u16,
    pub body: String,
}

pub fn get(address: SocketAddr, path: &str) -> Page {
    let mut stream = TcpStream::connect_timeout(&address, SOON).expect("the admin port is open");
    stream
        .set_read_timeout(Some(SOON))
        .expect("the limit is not zero");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
    )
    .expect("the request is taken");
    let mut text = String::new();
    stream
        .read_to_string(&mut text)
        .expect("the answer is text");
    let status = text
        .split_whitespace()
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("an answer starts with its status");
    let (_, body) = text
        .split_once("\r\n\r\n")
        .expect("a blank line ends the headers");
    Page {
        status,
        body: body.to_owned(),
    }
}

/// The value of a metric with exactly these labels, as in `name{group="g"}`.
pub fn metric(page: &str, name: &str) -> Option<f64> {
    page.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .map(|value| value.parse().expect("a metric is a number"))
}
