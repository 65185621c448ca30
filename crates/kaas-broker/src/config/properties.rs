//! Java's `.properties` syntax: comments, `=`, `:` or blanks between key and value, escapes, lines that continue.

/// One entry and the line it starts on, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    pub line: usize,
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub line: usize,
    pub reason: String,
}

/// The entries in the order of the file; a key may occur more than once, and then the last one counts.
pub fn parse(text: &str) -> Result<Vec<Property>, SyntaxError> {
    let mut properties = Vec::new();
    let mut lines = lines(text).enumerate();
    while let Some((index, line)) = lines.next() {
        let line = line.trim_start_matches(is_blank);
        // A backslash alone continues nothing: as in Java, the next line begins an entry.
        if line.is_empty() || line == "\\" || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while continues(&logical) {
            logical.pop();
            match lines.next() {
                Some((_, next)) => logical.push_str(next.trim_start_matches(is_blank)),
                None => break,
            }
        }
        let (key, value) = split(&logical);
        let unescaped = |text| {
            unescape(text).map_err(|reason| SyntaxError {
                line: index + 1,
                reason,
            })
        };
        properties.push(Property {
            line: index + 1,
            key: unescaped(key)?,
            value: unescaped(value)?,
        });
    }
    Ok(properties)
}

/// Lines end with `\n`, `\r` or `\r\n`.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        match text.find(['\n', '\r']) {
            Some(end) => {
                let next = if text[end..].starts_with("\r\n") {
                    end + 2
                } else {
                    end + 1
                };
                rest = Some(&text[next..]);
                Some(&text[..end])
            }
            None => {
                rest = None;
                Some(text)
            }
        }
    })
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// A line that ends with an odd number of backslashes goes on in the next.
fn continues(line: &str) -> bool {
    line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}

/// Key and value, still escaped.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c| {
        let ends = !escaped && (is_blank(c) || matches!(c, '=' | ':'));
        escaped = c == '\\' && !escaped;
        ends
    });
    let Some(end) = end else { return (line, "") };
    let rest = line[end..].trim_start_matches(is_blank);
    let value = rest
        .strip_prefix(['=', ':'])
        .unwrap_or(rest)
        .trim_start_matches(is_blank);
    (&line[..end], value)
}

fn unescape(text: &str) -> Result<String, String> {
    let mut units = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next() {
                Some('u') => {
                    let digits: String = chars.by_ref().take(4).collect();
                    match u16::from_str_radix(&digits, 16) {
                        Ok(unit) if digits.len() == 4 && !digits.starts_with('+') => {
                            units.push(unit)
                        }
                        _ => {
                            return Err(format!(
                                "\\u{digits} is not \\u and four hexadecimal digits"
                            ));
                        }
                    }
                    continue;
                }
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16(&units).map_err(|_| "a \\u escape is half a character".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(usize, String, String)> {
        parse(text)
            .unwrap()
            .into_iter()
            .map(|property| (property.line, property.key, property.value))
            .collect()
    }

    fn one(text: &str) -> (String, String) {
        let [property] = &parse(text).unwrap()[..] else {
            panic!("{text:?} is not one entry")
        };
        (property.key.clone(), property.value.clone())
    }

    #[test]
    fn equals_colon_or_blanks_part_key_and_value() {
        for text in [
            "a=b", "a:b", "a b", "a\tb", "a = b", "a  :  b", "  a=b", "\x0ca=b",
        ] {
            assert_eq!(one(text), ("a".to_owned(), "b".to_owned()), "{text:?}");
        }
        assert_eq!(one("a = = b"), ("a".to_owned(), "= b".to_owned()));
        assert_eq!(one("a"), ("a".to_owned(), String::new()));
        assert_eq!(one("=b"), (String::new(), "b".to_owned()));
        assert_eq!(one("a=b "), ("a".to_owned(), "b ".to_owned()));
    }

    #[test]
    fn comments_and_blank_lines_are_no_entries_and_lines_count_from_one() {
        let text = "# one\n\n  ! two\r\na=1\r\rb=2\n#c=\\\nd=4";
        let expected = [(4, "a", "1"), (6, "b", "2"), (8, "d", "4")];
        assert_eq!(
            entries(text),
            expected.map(|(line, key, value)| (line, key.to_owned(), value.to_owned()))
        );
    }

    #[test]
    fn an_odd_number_of_backslashes_at_the_end_continues_the_line() {
        assert_eq!(one("a=b,\\\n   c"), ("a".to_owned(), "b,c".to_owned()));
        assert_eq!(one("a=b\\\\"), ("a".to_owned(), "b\\".to_owned()));
        assert_eq!(one("a=b\\\n#c"), ("a".to_owned(), "b#c".to_owned()));
        assert_eq!(one("\\\n#c\na=b"), ("a".to_owned(), "b".to_owned()));
        assert_eq!(one("a=b\\"), ("a".to_owned(), "b".to_owned()));
        assert_eq!(one("a\\\n=b"), ("a".to_owned(), "b".to_owned()));
    }

    #[test]
    fn escapes_stand_for_characters() {
        assert_eq!(one(r"a\=b\:c\ d=e"), ("a=b:c d".to_owned(), "e".to_owned()));
        assert_eq!(
            one(r"a=\t\n\r\f\q\\"),
            ("a".to_owned(), "\t\n\r\x0cq\\".to_owned())
        );
        assert_eq!(
            one(r"a=\u00e9\ud83d\ude00é"),
            ("a".to_owned(), "é😀é".to_owned())
        );
    }

    #[test]
    fn a_malformed_unicode_escape_names_its_line() {
        for text in [r"\u12", r"\u12g4", r"\ud83d", r"\u+123"] {
            let error = parse(&format!("a=1\nb={text}")).unwrap_err();
            assert_eq!(error.line, 2, "{text}");
        }
    }
}
