//! The fields of files, read from the declarations of the types that the files are decoded into: names as serde sees them,
//! whether they must be there, and what their docs say.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use syn::{Attribute, Expr, Fields, GenericArgument, Item, Lit, Meta, PathArguments, Type};

/// Deeper than any of our files; a type that holds itself has to be named as one with a table of its own.
const NESTING_MAX: usize = 8;

/// Types whose values are single words, and what to call those.
const WORDS: [(&str, &str); 13] = [
    ("String", "text"),
    ("bool", "`true` or `false`"),
    ("u16", "number"),
    ("u32", "number"),
    ("u64", "number"),
    ("usize", "number"),
    ("Value", "anything"),
    ("IgnoredAny", "anything"),
    ("Reference", "image reference"),
    ("Digest", "digest"),
    ("Platform", "platform"),
    ("Version", "version"),
    ("Requirement", "text"),
];

/// Types by their names.
pub(crate) struct Types(BTreeMap<String, Kind>);

enum Kind {
    /// A mapping with these fields.
    Mapping(Vec<Field>),
    /// One of these.
    Choice(Vec<Variant>),
}

struct Field {
    name: String,
    shape: Shape,
    required: bool,
    /// Left out of what is written when there is nothing to say.
    left_out: bool,
    docs: String,
}

/// What the last but one column of a table says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Whether a field of a file has to be there.
    Needed,
    /// Whether a field of a report is always there and not null.
    Always,
}

struct Variant {
    name: String,
    docs: String,
    shape: Option<Shape>,
}

#[derive(Debug, Clone)]
enum Shape {
    /// A type of this name.
    Named(String),
    /// A list of them.
    List(Box<Shape>),
    /// A mapping of free names to them.
    Map(Box<Shape>),
    /// Just so many of them.
    Tuple(usize, Box<Shape>),
}

impl Types {
    /// Reads the types that are declared in some files.
    pub(crate) fn read(root: &Path, files: &[&str]) -> anyhow::Result<Self> {
        let mut types = Self(BTreeMap::new());
        for file in files {
            let text =
                std::fs::read_to_string(root.join(file)).with_context(|| format!("failed to read {file}"))?;
            types.add(&text).with_context(|| format!("in {file}"))?;
        }
        Ok(types)
    }

    fn add(&mut self, text: &str) -> anyhow::Result<()> {
        for item in syn::parse_file(text).context("not readable as Rust")?.items {
            let (name, kind) = match item {
                Item::Struct(item) if is_data(&item.attrs) => {
                    let name = item.ident.to_string();
                    let fields = self.fields(&name, &item.attrs, &item.fields)?;
                    (name, Kind::Mapping(fields))
                }
                Item::Enum(item) if is_data(&item.attrs) => {
                    let name = item.ident.to_string();
                    let serde = Serde::read(&item.attrs)?;
                    let mut variants = Vec::new();
                    for variant in &item.variants {
                        let own = Serde::read(&variant.attrs)?;
                        let written = own.name_of(&variant.ident.to_string(), &serde, Position::Variant)?;
                        let shape = match &variant.fields {
                            Fields::Unit => None,
                            Fields::Unnamed(fields) => {
                                let field = fields.unnamed.first().context("a variant without a value")?;
                                Some(shape(&field.ty)?.0)
                            }
                            named @ Fields::Named(_) => {
                                let inner = format!("{name}::{}", variant.ident);
                                let fields = self.fields(&inner, &variant.attrs, named)?;
                                self.0.insert(inner.clone(), Kind::Mapping(fields));
                                Some(Shape::Named(inner))
                            }
                        };
                        variants.push(Variant { name: written, docs: docs(&variant.attrs), shape });
                    }
                    (name, Kind::Choice(variants))
                }
                _ => continue,
            };
            self.0.insert(name, kind);
        }
        Ok(())
    }

    fn fields(&self, owner: &str, attributes: &[Attribute], fields: &Fields) -> anyhow::Result<Vec<Field>> {
        ensure!(!self.0.contains_key(owner), "{owner} is declared twice; name fewer files");
        let container = Serde::read(attributes)?;
        let mut read = Vec::new();
        for field in fields {
            let ident = field.ident.as_ref().with_context(|| format!("{owner} has fields without names"))?;
            let ident = ident.to_string();
            let serde = Serde::read(&field.attrs)?;
            if serde.skipped {
                continue;
            }
            let (shape, optional) =
                shape(&field.ty).with_context(|| format!("in the type of {owner}.{ident}"))?;
            read.push(Field {
                name: serde.name_of(&ident, &container, Position::Field)?,
                shape,
                required: !(optional || serde.default || container.default),
                left_out: optional || serde.left_out,
                docs: docs(&field.attrs),
            });
        }
        Ok(read)
    }

    /// The table of a type: one row for each field, fields of fields included, or for each value.
    pub(crate) fn table(
        &self,
        name: &str,
        elsewhere: &BTreeMap<&str, &str>,
        column: Column,
    ) -> anyhow::Result<String> {
        let mut rows = Rows { types: self, elsewhere, column, text: String::new() };
        match self.0.get(name) {
            Some(Kind::Mapping(fields)) => rows.fields("", fields, 0)?,
            Some(Kind::Choice(variants)) if are_values(variants) => return values(variants),
            Some(Kind::Choice(variants)) => rows.variants("", variants, 0)?,
            None => bail!("no type {name} in these files"),
        }
        let heading = match column {
            Column::Needed => "needed",
            Column::Always => "always",
        };
        Ok(format!("| field | value | {heading} | meaning |\n|---|---|---|---|\n{}", rows.text))
    }
}

/// Whether a choice is one between plain values.
fn are_values(variants: &[Variant]) -> bool {
    variants.iter().all(|variant| variant.shape.is_none())
}

fn values(variants: &[Variant]) -> anyhow::Result<String> {
    let mut table = "| value | meaning |\n|---|---|\n".to_owned();
    for Variant { name, docs, .. } in variants {
        ensure!(!docs.is_empty(), "{name} has no docs");
        writeln!(table, "| `{name}` | {docs} |")?;
    }
    Ok(table)
}

struct Rows<'t> {
    types: &'t Types,
    elsewhere: &'t BTreeMap<&'t str, &'t str>,
    column: Column,
    text: String,
}

impl Rows<'_> {
    fn fields(&mut self, before: &str, fields: &[Field], depth: usize) -> anyhow::Result<()> {
        ensure!(depth < NESTING_MAX, "{before}: nested too deeply; does the type hold itself?");
        for field in fields {
            let path = join(before, &field.name);
            let is_there = match self.column {
                Column::Needed => field.required,
                Column::Always => !field.left_out,
            };
            let there = if is_there { "yes" } else { "" };
            self.row(&path, &field.shape, there, &field.docs, depth)?;
        }
        Ok(())
    }

    fn variants(&mut self, before: &str, variants: &[Variant], depth: usize) -> anyhow::Result<()> {
        for variant in variants {
            let path = join(before, &variant.name);
            let shape = variant.shape.as_ref().with_context(|| format!("{path} has no value"))?;
            self.row(&path, shape, "one of them", &variant.docs, depth)?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        path: &str,
        shape: &Shape,
        needed: &str,
        docs: &str,
        depth: usize,
    ) -> anyhow::Result<()> {
        ensure!(!docs.is_empty(), "{path} has no docs");
        let Told { words, values, inside } = self.tell(path, shape)?;
        let meaning = format!("{docs}{values}").replace('|', "\\|");
        writeln!(self.text, "| `{path}` | {words} | {needed} | {meaning} |")?;
        let Some((inner_path, name)) = inside else { return Ok(()) };
        match self.types.0.get(&name) {
            Some(Kind::Mapping(fields)) => self.fields(&inner_path, fields, depth + 1),
            Some(Kind::Choice(variants)) => self.variants(&inner_path, variants, depth + 1),
            None => Ok(()),
        }
    }

    /// What there is to say of a value at a path.
    fn tell(&self, path: &str, shape: &Shape) -> anyhow::Result<Told> {
        match shape {
            Shape::Named(name) => self.tell_type(path, name),
            Shape::List(item) => Ok(self.tell(&format!("{path}[]"), item)?.with_words("list: ")),
            Shape::Map(value) => Ok(self.tell(&format!("{path}.NAME"), value)?.with_words("by name: ")),
            Shape::Tuple(length, item) => {
                Ok(self.tell(path, item)?.with_words(&format!("list of {length}: ")))
            }
        }
    }

    fn tell_type(&self, path: &str, name: &str) -> anyhow::Result<Told> {
        if let Some(words) = self.elsewhere.get(name) {
            return Ok(Told::word(words));
        }
        match self.types.0.get(name) {
            Some(Kind::Choice(variants)) if are_values(variants) => {
                let names: Vec<_> = variants.iter().map(|variant| format!("`{}`", variant.name)).collect();
                let mut values = String::new();
                for Variant { name, docs, .. } in variants {
                    ensure!(!docs.is_empty(), "{path}: {name} has no docs");
                    write!(values, " `{name}`: {docs}")?;
                }
                Ok(Told { words: alternatives(&names), values, inside: None })
            }
            Some(_) => {
                let inside = Some((path.to_owned(), name.to_owned()));
                Ok(Told { words: "mapping".to_owned(), values: String::new(), inside })
            }
            None => WORDS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, words)| Told::word(words))
                .with_context(|| format!("{path}: {name} is in none of these files and no known word")),
        }
    }
}

/// What there is to say of a value.
struct Told {
    /// What to call it.
    words: String,
    /// The values that it can have and what each means, if they can be listed.
    values: String,
    /// The type whose fields follow, with the path that they get.
    inside: Option<(String, String)>,
}

impl Told {
    fn word(words: &str) -> Self {
        Self { words: words.to_owned(), values: String::new(), inside: None }
    }

    fn with_words(mut self, before: &str) -> Self {
        self.words.insert_str(0, before);
        self
    }
}

fn join(before: &str, name: &str) -> String {
    if before.is_empty() { name.to_owned() } else { format!("{before}.{name}") }
}

fn alternatives(names: &[String]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        names => names.join(", "),
    }
}

/// What serde's attributes say, as far as it matters here.
#[derive(Default)]
struct Serde {
    rename: Option<String>,
    rename_all: Option<String>,
    default: bool,
    left_out: bool,
    skipped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Field,
    Variant,
}

impl Serde {
    fn read(attributes: &[Attribute]) -> anyhow::Result<Self> {
        let mut serde = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            attribute.parse_nested_meta(|meta| {
                let mut text = None;
                if meta.input.peek(syn::Token![=]) {
                    text = Some(meta.value()?.parse::<syn::LitStr>()?.value());
                }
                if meta.path.is_ident("rename") {
                    serde.rename = text;
                } else if meta.path.is_ident("rename_all") {
                    serde.rename_all = text;
                } else if meta.path.is_ident("default") {
                    serde.default = true;
                } else if meta.path.is_ident("skip_serializing_if") {
                    serde.left_out = true;
                } else if meta.path.is_ident("skip") {
                    serde.skipped = true;
                } else if !["deny_unknown_fields", "deserialize_with"]
                    .iter()
                    .any(|known| meta.path.is_ident(known))
                {
                    return Err(
                        meta.error("this attribute changes what a file looks like; teach it to the tables")
                    );
                }
                Ok(())
            })?;
        }
        Ok(serde)
    }

    /// The name of a field or variant in a file.
    fn name_of(&self, ident: &str, container: &Self, position: Position) -> anyhow::Result<String> {
        if let Some(name) = &self.rename {
            return Ok(name.clone());
        }
        Ok(match (container.rename_all.as_deref(), position) {
            (None, _) => ident.to_owned(),
            (Some("camelCase"), Position::Field) => camel(ident),
            (Some("camelCase"), Position::Variant) => lower_first(ident),
            (Some("lowercase"), Position::Variant) => ident.to_lowercase(),
            (Some("kebab-case"), Position::Variant) => kebab(ident),
            (Some(other), _) => bail!("names in {other} are not known here"),
        })
    }
}

fn camel(ident: &str) -> String {
    let mut parts = ident.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| {
        let mut letters = part.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        name + &capital.into_iter().chain(letters).collect::<String>()
    })
}

fn lower_first(ident: &str) -> String {
    let mut letters = ident.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn kebab(ident: &str) -> String {
    let mut name = String::new();
    for letter in ident.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Whether serde reads or writes the type.
fn is_data(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("derive")).any(|attribute| {
        let mut found = false;
        // A derive that can't be read is none of serde's.
        let _ = attribute.parse_nested_meta(|meta| {
            let last = meta.path.segments.last();
            found |= last.is_some_and(|last| ["Deserialize", "Serialize"].iter().any(|it| last.ident == it));
            Ok(())
        });
        found
    })
}

/// The first paragraph of the docs, as one line of Markdown.
fn docs(attributes: &[Attribute]) -> String {
    let mut words = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(expression) = &pair.value else { continue };
        let Lit::Str(line) = &expression.lit else { continue };
        let line = line.value();
        if line.trim().is_empty() && !words.is_empty() {
            break;
        }
        words.push(line.trim().to_owned());
    }
    // Links to items lead nowhere outside rustdoc.
    words.join(" ").replace("[`", "`").replace("`]", "`")
}

/// The shape of a type, and whether a value may be missing.
fn shape(written: &Type) -> anyhow::Result<(Shape, bool)> {
    match written {
        Type::Path(path) => {
            let last = path.path.segments.last().context("a type without a name")?;
            let name = last.ident.to_string();
            let mut arguments = Vec::new();
            if let PathArguments::AngleBracketed(angles) = &last.arguments {
                for argument in &angles.args {
                    if let GenericArgument::Type(inner) = argument {
                        arguments.push(inner);
                    }
                }
            }
            match (name.as_str(), arguments.as_slice()) {
                ("Option", [inner]) => Ok((shape(inner)?.0, true)),
                ("Box", [inner]) => shape(inner),
                ("Vec" | "BTreeSet", [inner]) => Ok((Shape::List(Box::new(shape(inner)?.0)), false)),
                ("BTreeMap", [_, inner]) => Ok((Shape::Map(Box::new(shape(inner)?.0)), false)),
                (_, []) => Ok((Shape::Named(name), false)),
                _ => bail!("the generic type {name} is not known here"),
            }
        }
        Type::Tuple(tuple) => {
            let first = tuple.elems.first().context("an empty tuple")?;
            Ok((Shape::Tuple(tuple.elems.len(), Box::new(shape(first)?.0)), false))
        }
        _ => bail!("a type that is neither a name nor a tuple"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const CODE: &str = r#"
        /// The file.
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct File {
            /// Its name.
            the_name: String,
            /// Who wins;
            /// told by one | two.
            ///
            /// Not for the table.
            #[serde(default)]
            rule: Rule,
            /// Parts of it.
            parts: Option<Vec<Part>>,
            /// Steps.
            #[serde(rename = "do")]
            steps: Vec<Step>,
            /// Two of them.
            pair: (String, String),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum Rule {
            /// The first.
            One,
            /// The other.
            NumberTwo,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        enum Part {
            /// By path.
            Files(BTreeMap<String, String>),
            /// Python.
            Python {
                /// Where.
                path: String,
            },
        }
        struct NotData { anything: Whatever<'static, u8, u8> }
    "#;

    fn types(code: &str) -> anyhow::Result<Types> {
        let mut types = Types(BTreeMap::new());
        types.add(code)?;
        Ok(types)
    }

    #[test]
    fn a_table_has_every_field_by_the_name_that_serde_reads() {
        let elsewhere = BTreeMap::from([("Step", "[step](#steps)")]);
        let table = types(CODE).unwrap().table("File", &elsewhere, Column::Needed).unwrap();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| `theName` | text | yes | Its name. |",
                "| `rule` | `one` or `number-two` |  | Who wins; told by one \\| two. `one`: The first. `number-two`: The other. |",
                "| `parts` | list: mapping |  | Parts of it. |",
                "| `parts[].files` | by name: text | one of them | By path. |",
                "| `parts[].python` | mapping | one of them | Python. |",
                "| `parts[].python.path` | text | yes | Where. |",
                "| `do` | list: [step](#steps) | yes | Steps. |",
                "| `pair` | list of 2: text | yes | Two of them. |",
            ]
        );
    }

    #[test]
    fn a_choice_between_values_has_a_table_of_its_own() {
        let table = types(CODE).unwrap().table("Rule", &BTreeMap::new(), Column::Needed).unwrap();
        assert_eq!(
            table,
            "| value | meaning |\n|---|---|\n| `one` | The first. |\n| `number-two` | The other. |\n"
        );
    }

    #[test]
    fn reports_say_what_is_always_there() {
        let code = "#[derive(Serialize)] struct Report { /** A. */ a: String, /** B. */ b: Option<String>, \
            /** C. */ #[serde(skip_serializing_if = \"Vec::is_empty\")] c: Vec<String>, /** D. */ #[serde(skip)] d: Odd }";
        let table = types(code).unwrap().table("Report", &BTreeMap::new(), Column::Always).unwrap();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            ["| `a` | text | yes | A. |", "| `b` | text |  | B. |", "| `c` | list: text |  | C. |"]
        );
    }

    #[test]
    fn what_would_make_a_table_wrong_is_refused() {
        let cases = [
            ("#[derive(Deserialize)] struct File { a: String }", "a has no docs"),
            ("#[derive(Deserialize)] struct File { /** A. */ a: Other }", "Other is in none of these files"),
            (
                "#[derive(Deserialize)] struct File { /** A. */ #[serde(flatten)] a: String }",
                "this attribute",
            ),
            (
                "#[derive(Deserialize)] #[serde(rename_all = \"UPPERCASE\")] struct File { /** A. */ a: String }",
                "UPPERCASE",
            ),
            ("#[derive(Deserialize)] struct File { /** A. */ a: Vec<File> }", "does the type hold itself"),
            ("struct File { a: String }", "no type File"),
        ];
        for (code, message) in cases {
            let made = types(code).and_then(|types| types.table("File", &BTreeMap::new(), Column::Needed));
            let error = made.err().map(|error| format!("{error:#}")).unwrap_or_default();
            assert!(error.contains(message), "{code}: {error:?}");
        }
    }
}
