//! Reads a table whose fields belong to two types. serde's `flatten` cannot refuse unknown fields, and a plan that is
//! misspelt must not run as something else.

use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use std::marker::PhantomData;

/// Reads the fields named in `own` as `Own` and all others as `Rest`; both refuse what they do not know.
pub(super) fn split<'de, D, Own, Rest>(
    deserializer: D,
    own: &'static [&'static str],
) -> Result<(Own, Rest), D::Error>
where
    D: Deserializer<'de>,
    Own: DeserializeOwned,
    Rest: DeserializeOwned,
{
    deserializer.deserialize_map(Split {
        own,
        types: PhantomData,
    })
}

/// Does the whole work inside the visit, because only an error that comes from there gets the table's line.
struct Split<Own, Rest> {
    own: &'static [&'static str],
    types: PhantomData<(Own, Rest)>,
}

impl<'de, Own: DeserializeOwned, Rest: DeserializeOwned> Visitor<'de> for Split<Own, Rest> {
    type Value = (Own, Rest);

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(Own, Rest), A::Error> {
        let (mut mine, mut others) = (toml::Table::new(), toml::Table::new());
        while let Some((name, value)) = map.next_entry::<String, toml::Value>()? {
            let table = if self.own.contains(&name.as_str()) {
                &mut mine
            } else {
                &mut others
            };
            table.insert(name, value);
        }
        let own = mine
            .try_into()
            .map_err(|error: toml::de::Error| A::Error::custom(error.message()))?;
        let rest = others.try_into().map_err(|error: toml::de::Error| {
            A::Error::custom(format!(
                "{} (always allowed: {})",
                error.message(),
                self.own.join(", ")
            ))
        })?;
        Ok((own, rest))
    }
}
