//! Messages of every type that the descriptors name, filled with random values that are likely to cause
//! trouble.

use std::collections::HashMap;

use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};

use super::dice::Dice;

#[derive(Message)]
struct Files {
    #[prost(message, repeated, tag = "1")]
    files: Vec<File>,
}

#[derive(Message)]
struct File {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "4")]
    messages: Vec<Type>,
    #[prost(message, repeated, tag = "6")]
    services: Vec<Service>,
}

#[derive(Clone, Message)]
struct Type {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    fields: Vec<Field>,
    #[prost(message, repeated, tag = "3")]
    nested: Vec<Type>,
}

#[derive(Clone, Message)]
struct Field {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "3")]
    number: u32,
    #[prost(int32, tag = "4")]
    label: i32,
    #[prost(int32, tag = "5")]
    kind: i32,
    #[prost(string, tag = "6")]
    of: String,
}

#[derive(Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    methods: Vec<Method>,
}

#[derive(Message)]
struct Method {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    input: String,
}

/// How deep messages nest.
const DEPTH_MAX: u32 = 6;
const REPEATED: i32 = 3;

/// Every message and every method.
pub struct Shapes {
    types: HashMap<String, Type>,
    /// `package.Service/Method` with the type of its input.
    pub methods: Vec<(String, String)>,
}

impl Shapes {
    pub fn load() -> Self {
        let (mut types, mut methods) = (HashMap::new(), Vec::new());
        for file in Files::decode(windlass_proto::DESCRIPTORS).unwrap().files {
            for message in file.messages {
                add(&mut types, &format!(".{}", file.package), message);
            }
            for service in file.services {
                for method in service.methods {
                    methods
                        .push((format!("{}.{}/{}", file.package, service.name, method.name), method.input));
                }
            }
        }
        Self { types, methods }
    }

    /// A message of a type.
    pub fn message(&self, dice: &mut Dice, of: &str, texts: &[String]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.fill(dice, of, texts, 0, &mut bytes);
        bytes
    }

    fn fill(&self, dice: &mut Dice, of: &str, texts: &[String], depth: u32, bytes: &mut Vec<u8>) {
        let Some(shape) = self.types.get(of) else { return };
        for field in &shape.fields {
            // Long polls would only make the run longer.
            if dice.once_in(4) || matches!(field.name.as_str(), "wait_ms" | "timeout_ms") {
                continue;
            }
            let times = if field.label == REPEATED { dice.below(4) } else { 1 };
            for _ in 0..times {
                self.field(dice, field, texts, depth, bytes);
            }
        }
    }

    fn field(&self, dice: &mut Dice, field: &Field, texts: &[String], depth: u32, bytes: &mut Vec<u8>) {
        match field.kind {
            1 => {
                encode_key(field.number, WireType::SixtyFourBit, bytes);
                bytes.extend(dice.one(&[0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::MAX]).to_le_bytes());
            }
            2 => {
                encode_key(field.number, WireType::ThirtyTwoBit, bytes);
                bytes
                    .extend(dice.one(&[0.0, 1.0, -1.0, f32::NAN, f32::NEG_INFINITY, f32::MAX]).to_le_bytes());
            }
            9 | 12 => {
                encode_key(field.number, WireType::LengthDelimited, bytes);
                put(bytes, dice.one(texts).as_bytes());
            }
            11 if depth < DEPTH_MAX => {
                let mut inner = Vec::new();
                self.fill(dice, &field.of, texts, depth + 1, &mut inner);
                encode_key(field.number, WireType::LengthDelimited, bytes);
                put(bytes, &inner);
            }
            11 => {}
            _ => {
                encode_key(field.number, WireType::Varint, bytes);
                encode_varint(number(dice), bytes);
            }
        }
    }
}

fn add(types: &mut HashMap<String, Type>, within: &str, message: Type) {
    let name = format!("{within}.{}", message.name);
    for nested in message.nested.clone() {
        add(types, &name, nested);
    }
    types.insert(name, message);
}

fn put(bytes: &mut Vec<u8>, inner: &[u8]) {
    encode_varint(inner.len() as u64, bytes);
    bytes.extend_from_slice(inner);
}

/// A number at some limit, or a random one.
fn number(dice: &mut Dice) -> u64 {
    const EDGES: [u64; 14] = [
        0,
        1,
        2,
        3,
        10,
        1_000,
        u32::MAX as u64,
        i32::MAX as u64,
        i32::MIN as u64,
        i64::MAX as u64,
        i64::MIN as u64,
        u64::MAX,
        1 << 62,
        4_000_000_000_000,
    ];
    if dice.once_in(4) { dice.next() >> dice.below(64) } else { *dice.one(&EDGES) }
}

/// The same bytes, randomly damaged.
pub fn damaged(dice: &mut Dice, mut bytes: Vec<u8>) -> Vec<u8> {
    for _ in 0..=dice.below(4) {
        let place = dice.below(bytes.len() + 1);
        match dice.below(5) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, dice.next() as u8),
            2 if place < bytes.len() => bytes[place] ^= 1 << dice.below(8),
            3 => bytes.extend_from_within(place..),
            _ => bytes.extend(dice.next().to_le_bytes()),
        }
    }
    bytes
}
