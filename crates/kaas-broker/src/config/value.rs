//! The types a configuration value can have, how each is read from and shown as text, and what a key may restrict it to.
//! The texts of the refusals are Kafka's own (`ConfigDef`), since clients see them in `INVALID_CONFIG` answers.

use std::fmt::Debug;

/// Kafka's `ConfigDef.Type`, with the numbers `DescribeConfigs` uses for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigType {
    Boolean = 1,
    String = 2,
    Int = 3,
    Short = 4,
    Long = 5,
    Double = 6,
    List = 7,
    Class = 8,
    Password = 9,
}

impl ConfigType {
    /// The code in a `DescribeConfigs` answer.
    pub fn code(self) -> i8 {
        self as i8
    }

    /// Kafka's name of the type, as its documentation prints it.
    pub fn name(self) -> &'static str {
        match self {
            ConfigType::Boolean => "boolean",
            ConfigType::String => "string",
            ConfigType::Int => "int",
            ConfigType::Short => "short",
            ConfigType::Long => "long",
            ConfigType::Double => "double",
            ConfigType::List => "list",
            ConfigType::Class => "class",
            ConfigType::Password => "password",
        }
    }
}

/// What a key allows beyond its type.
#[derive(Clone, Copy, Debug)]
pub enum Valid {
    Any,
    AtLeast(i64),
    Between(i64, i64),
    /// `Between`, or this one number besides.
    BetweenOr(i64, i64, i64),
    Fraction(f64, f64),
    OneOf(&'static [&'static str]),
    /// Every element of the list is one of these; an empty list passes.
    EachOf(&'static [&'static str]),
    /// A rule of its own: what it says in a few words, and the check, whose error says what is wrong.
    Rule(&'static str, fn(&str) -> Result<(), String>),
}

impl Valid {
    /// What is allowed, in a few words; `None` if everything the type can hold is.
    pub fn describe(&self) -> Option<String> {
        match *self {
            Valid::Any => None,
            Valid::AtLeast(low) => Some(format!("at least {low}")),
            Valid::Between(low, high) => Some(format!("{low} to {high}")),
            Valid::BetweenOr(low, high, other) => Some(format!("{low} to {high}, or {other}")),
            Valid::Fraction(low, high) => Some(format!("{low} to {high}")),
            Valid::OneOf(choices) => Some(format!("one of {}", choices.join(", "))),
            Valid::EachOf(choices) => Some(format!("a list of {}", choices.join(", "))),
            Valid::Rule(text, _) => Some(text.to_owned()),
        }
    }

    fn check_number(&self, number: i64) -> Result<(), String> {
        let (low, high) = match *self {
            Valid::AtLeast(low) => (low, i64::MAX),
            Valid::Between(low, high) => (low, high),
            Valid::BetweenOr(low, high, other)
                if number != other && !(low..=high).contains(&number) =>
            {
                return Err(format!(
                    "Value must be between {low} and {high} or equal to {other}"
                ));
            }
            Valid::Rule(_, check) => return check(&number.to_string()),
            _ => return Ok(()),
        };
        if number < low {
            Err(format!("Value must be at least {low}"))
        } else if number > high {
            Err(format!("Value must be no more than {high}"))
        } else {
            Ok(())
        }
    }

    fn check_text(&self, text: &str) -> Result<(), String> {
        match *self {
            Valid::OneOf(choices) if !choices.contains(&text) => {
                Err(format!("String must be one of: {}", choices.join(", ")))
            }
            Valid::Rule(_, check) => check(text),
            _ => Ok(()),
        }
    }
}

/// A type that a field of a configuration can have.
pub trait ConfigValue: Clone + Debug + PartialEq + Sized {
    const TYPE: ConfigType;

    /// Reads a value; the error is Kafka's sentence about what is wrong with the text.
    fn parse(text: &str) -> Result<Self, String>;

    /// The text that `parse` takes back; `None` for a value that is absent.
    fn show(&self) -> Option<String>;

    fn check(&self, valid: &Valid) -> Result<(), String>;
}

impl ConfigValue for bool {
    const TYPE: ConfigType = ConfigType::Boolean;

    fn parse(text: &str) -> Result<bool, String> {
        if text.eq_ignore_ascii_case("true") {
            Ok(true)
        } else if text.eq_ignore_ascii_case("false") {
            Ok(false)
        } else {
            Err("Expected value to be either true or false".to_owned())
        }
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn check(&self, _: &Valid) -> Result<(), String> {
        Ok(())
    }
}

impl ConfigValue for i32 {
    const TYPE: ConfigType = ConfigType::Int;

    fn parse(text: &str) -> Result<i32, String> {
        text.parse()
            .map_err(|_| "Not a number of type INT".to_owned())
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn check(&self, valid: &Valid) -> Result<(), String> {
        valid.check_number(i64::from(*self))
    }
}

impl ConfigValue for i64 {
    const TYPE: ConfigType = ConfigType::Long;

    fn parse(text: &str) -> Result<i64, String> {
        text.parse()
            .map_err(|_| "Not a number of type LONG".to_owned())
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn check(&self, valid: &Valid) -> Result<(), String> {
        valid.check_number(*self)
    }
}

impl ConfigValue for f64 {
    const TYPE: ConfigType = ConfigType::Double;

    fn parse(text: &str) -> Result<f64, String> {
        text.parse()
            .map_err(|_| "Not a number of type DOUBLE".to_owned())
    }

    /// As Java shows it: a whole number keeps its `.0`.
    fn show(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn check(&self, valid: &Valid) -> Result<(), String> {
        match *valid {
            Valid::Fraction(low, _) if self.is_nan() || *self < low => {
                Err(format!("Value must be at least {low}"))
            }
            Valid::Fraction(_, high) if *self > high => {
                Err(format!("Value must be no more than {high}"))
            }
            _ => Ok(()),
        }
    }
}

impl ConfigValue for String {
    const TYPE: ConfigType = ConfigType::String;

    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> Option<String> {
        Some(self.clone())
    }

    fn check(&self, valid: &Valid) -> Result<(), String> {
        valid.check_text(self)
    }
}

/// A comma-separated list; blanks around its elements are not part of them.
impl ConfigValue for Vec<String> {
    const TYPE: ConfigType = ConfigType::List;

    fn parse(text: &str) -> Result<Vec<String>, String> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let elements = text.split(',').map(|element| element.trim().to_owned());
        let elements: Vec<String> = elements.collect();
        if elements.iter().any(String::is_empty) {
            return Err("values must not be empty".to_owned());
        }
        Ok(elements)
    }

    fn show(&self) -> Option<String> {
        Some(self.join(","))
    }

    fn check(&self, valid: &Valid) -> Result<(), String> {
        match *valid {
            Valid::EachOf(choices) => self
                .iter()
                .try_for_each(|element| Valid::OneOf(choices).check_text(element)),
            Valid::Rule(_, check) => check(&self.join(",")),
            _ => Ok(()),
        }
    }
}

/// A key without a default. It is absent until it is set; no text stands for absence.
impl<T: ConfigValue> ConfigValue for Option<T> {
    const TYPE: ConfigType = T::TYPE;

    fn parse(text: &str) -> Result<Option<T>, String> {
        T::parse(text).map(Some)
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(T::show)
    }

    fn check(&self, valid: &Valid) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), |value| value.check(valid))
    }
}

/// Whose time the records of a topic carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// The broker's, given on append.
    LogAppendTime,
}

impl ConfigValue for TimestampType {
    const TYPE: ConfigType = ConfigType::String;

    fn parse(text: &str) -> Result<TimestampType, String> {
        match text {
            "CreateTime" => Ok(TimestampType::CreateTime),
            "LogAppendTime" => Ok(TimestampType::LogAppendTime),
            _ => Err("String must be one of: CreateTime, LogAppendTime".to_owned()),
        }
    }

    fn show(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }

    fn check(&self, _: &Valid) -> Result<(), String> {
        Ok(())
    }
}
