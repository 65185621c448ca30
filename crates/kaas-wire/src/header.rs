//! The headers in front of requests and responses.
//!
//! A frame is a length in 32 bits and that many bytes: a header, then the message. The length is not read here.

use crate::api_key::ApiKey;
use crate::reader::{DecodeError, Reader};
use crate::writer::Writer;

/// What stands in front of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    pub api_key: ApiKey,
    pub api_version: i16,
    /// Comes back in front of the response.
    pub correlation_id: i32,
    pub client_id: Option<String>,
}

/// Why a request cannot be answered as what it says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("request has the unknown api key {api_key} (version {api_version})")]
    UnknownApi { api_key: i16, api_version: i16 },
    #[error("request header does not decode: {0}")]
    Malformed(#[from] DecodeError),
}

/// Reads the header of a request: key and version come first, so an unknown key is told from garbage.
///
/// The version is not compared with what is served. A known api in an unknown version has the header of its newest
/// version, as with Kafka: that is what lets ApiVersions answer a client newer than the broker.
pub fn decode_request_header(reader: &mut Reader) -> Result<RequestHeader, HeaderError> {
    let api_key = ApiKey(reader.i16()?);
    let api_version = reader.i16()?;
    let Some(flexible) = api_key.is_flexible(api_version) else {
        return Err(HeaderError::UnknownApi {
            api_key: api_key.0,
            api_version,
        });
    };
    let correlation_id = reader.i32()?;
    // The client id kept its old form when headers became flexible, so that any broker can read it.
    let client_id = reader.nullable_string(false)?;
    if flexible {
        reader.tagged_fields(|_, size, reader| reader.skip(size))?;
    }
    Ok(RequestHeader {
        api_key,
        api_version,
        correlation_id,
        client_id,
    })
}

/// Appends the header of a request.
pub fn encode_request_header(header: &RequestHeader, writer: &mut Writer) {
    writer.i16(header.api_key.0);
    writer.i16(header.api_version);
    writer.i32(header.correlation_id);
    writer.nullable_string(header.client_id.as_deref(), false);
    if header
        .api_key
        .is_flexible(header.api_version)
        .unwrap_or(false)
    {
        writer.uvarint(0);
    }
}

/// Whether tagged fields follow the correlation id of a response. Never for ApiVersions: a client reads that response
/// before it knows what the broker speaks.
pub fn response_header_is_flexible(api_key: ApiKey, api_version: i16) -> bool {
    api_key != ApiKey::API_VERSIONS && api_key.is_flexible(api_version).unwrap_or(false)
}

/// Bytes of [`encode_response_header`].
pub fn response_header_size(api_key: ApiKey, api_version: i16) -> usize {
    if response_header_is_flexible(api_key, api_version) {
        5
    } else {
        4
    }
}

/// Appends the header of a response.
pub fn encode_response_header(
    api_key: ApiKey,
    api_version: i16,
    correlation_id: i32,
    writer: &mut Writer,
) {
    writer.i32(correlation_id);
    if response_header_is_flexible(api_key, api_version) {
        writer.uvarint(0);
    }
}

/// Reads the header of a response and gives its correlation id.
pub fn decode_response_header(
    api_key: ApiKey,
    api_version: i16,
    reader: &mut Reader,
) -> Result<i32, DecodeError> {
    let correlation_id = reader.i32()?;
    if response_header_is_flexible(api_key, api_version) {
        reader.tagged_fields(|_, size, reader| reader.skip(size))?;
    }
    Ok(correlation_id)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn decode(bytes: &[u8]) -> Result<RequestHeader, HeaderError> {
        decode_request_header(&mut Reader::new(Bytes::copy_from_slice(bytes), 1024))
    }

    #[test]
    fn a_request_header_comes_back_as_it_went() {
        for (api_key, api_version) in [
            (ApiKey::JOIN_GROUP, 5),
            (ApiKey::JOIN_GROUP, 6),
            (ApiKey::API_VERSIONS, 99),
            (ApiKey::SASL_HANDSHAKE, 1),
        ] {
            for client_id in [None, Some(String::new()), Some("a".to_owned())] {
                let header = RequestHeader {
                    api_key,
                    api_version,
                    correlation_id: 7,
                    client_id,
                };
                let mut writer = Writer::default();
                encode_request_header(&header, &mut writer);
                assert_eq!(decode(writer.as_slice()), Ok(header));
            }
        }
    }

    #[test]
    fn an_unknown_api_is_told_from_garbage() {
        assert_eq!(
            decode(&[0x03, 0xe7, 0x00, 0x02, 0xff]),
            Err(HeaderError::UnknownApi {
                api_key: 999,
                api_version: 2
            })
        );
        assert!(matches!(
            decode(&[0x00, 0x0b, 0x00]),
            Err(HeaderError::Malformed(_))
        ));
        assert!(matches!(decode(&[]), Err(HeaderError::Malformed(_))));
    }

    #[test]
    fn a_header_that_is_cut_off_anywhere_is_malformed() {
        let header = RequestHeader {
            api_key: ApiKey::JOIN_GROUP,
            api_version: 9,
            correlation_id: 7,
            client_id: Some("client".to_owned()),
        };
        let mut writer = Writer::default();
        encode_request_header(&header, &mut writer);
        for end in 0..writer.len() {
            assert!(matches!(
                decode(&writer.as_slice()[..end]),
                Err(HeaderError::Malformed(_))
            ));
        }
    }

    #[test]
    fn the_response_header_of_api_versions_is_never_flexible() {
        assert!(!response_header_is_flexible(ApiKey::API_VERSIONS, 3));
        assert!(response_header_is_flexible(ApiKey::JOIN_GROUP, 6));
        assert!(!response_header_is_flexible(ApiKey::JOIN_GROUP, 5));
        assert!(!response_header_is_flexible(ApiKey::SASL_HANDSHAKE, 1));
    }
}
