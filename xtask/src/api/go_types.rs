//! What Go's encoder does with zero values, read from the declarations of the API's types.
//!
//! A server keeps objects of built-in kinds as Go structs. A field without `omitempty` is always written, and so is a
//! struct even with it; a scalar, list or map with `omitempty` is dropped when it is zero or empty; a pointer is dropped
//! when it is nil. `OpenAPI` says none of this, so the tags of the fields do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// Deepest nesting of folders and of structs within structs.
const MAX_DEPTH: usize = 16;

/// All declared types by package path and name (`k8s.io/api/apps/v1.Deployment`).
#[derive(Default)]
pub(crate) struct GoTypes {
    types: BTreeMap<String, Declared>,
}

enum Declared {
    Struct(Vec<Field>),
    /// Named something else, such as `string` or `[]Taint`.
    Named(String),
}

struct Field {
    /// Name in JSON; empty for a struct whose fields are inlined.
    name: String,
    /// Type with its package path, such as `*k8s.io/api/core/v1.Affinity`.
    t: String,
    omitempty: bool,
    omitzero: bool,
    /// Number in Protocol Buffers, if the type has that form.
    number: Option<u32>,
}

/// What a value of a type is like.
enum Shape<'a> {
    Pointer,
    /// Dropped by `omitempty` when it is this.
    Empty(Value),
    Struct(&'a [Field]),
    /// A struct that writes itself: never dropped by `omitempty`.
    Own(Value),
}

impl GoTypes {
    /// Reads all packages of a module.
    pub(crate) fn read_module(&mut self, module: &str, folder: &Path) -> Result<()> {
        self.read_folder(module, folder, 0)
    }

    fn read_folder(&mut self, package: &str, folder: &Path, depth: usize) -> Result<()> {
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
            entries.push(entry?.path());
        }
        entries.sort();
        for path in entries {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && depth < MAX_DEPTH && name != "testdata" && name != "vendor" {
                self.read_folder(&format!("{package}/{name}"), &path, depth + 1)?;
            } else if path.extension().is_some_and(|extension| extension == "go")
                && !name.ends_with("_test.go")
                && !name.contains("generated")
            {
                let text =
                    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                self.read_file(package, &text);
            }
        }
        Ok(())
    }

    fn read_file(&mut self, package: &str, text: &str) {
        let imports = imports(text);
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some((name, rest)) = line.strip_prefix("type ").and_then(|rest| rest.split_once(' ')) else {
                continue;
            };
            let declared = if rest.starts_with("struct") {
                let mut fields = Vec::new();
                if !rest.ends_with('}') {
                    for line in lines.by_ref().take_while(|line| !line.starts_with('}')) {
                        fields.extend(field(line, package, &imports));
                    }
                }
                Declared::Struct(fields)
            } else {
                let rest = rest.trim_start_matches("= ").split("//").next().unwrap_or_default().trim();
                Declared::Named(qualify(rest, package, &imports))
            };
            self.types.insert(format!("{package}.{name}"), declared);
        }
    }

    /// Adds `zero`, `omitzero`, and `pb` and `bytes` to the fields of the types.
    pub(crate) fn annotate(&self, types: &mut BTreeMap<String, Value>) {
        for (name, t) in types {
            let Some(Declared::Struct(fields)) = self.types.get(&go_name(name)) else { continue };
            let Some(known) = t.get_mut("fields").and_then(Value::as_object_mut) else { continue };
            self.annotate_fields(fields, known, &mut Vec::new());
        }
    }

    fn annotate_fields(&self, fields: &[Field], known: &mut Map<String, Value>, within: &mut Vec<u32>) {
        for field in fields {
            if field.name.is_empty() {
                if let (Shape::Struct(inner), true) = (self.shape(&field.t, 0), within.len() < MAX_DEPTH) {
                    // Inlined in JSON, a message of its own in Protocol Buffers. What has no number (kind and version)
                    // is not in the message at all, which the number 0 says.
                    within.push(field.number.unwrap_or(0));
                    self.annotate_fields(inner, known, within);
                    within.pop();
                }
                continue;
            }
            let Some(facts) = known.get_mut(&field.name) else { continue };
            if let Some(number) = field.number.filter(|_| !within.contains(&0)) {
                let path: Vec<u32> = within.iter().copied().chain([number]).collect();
                facts["pb"] = if within.is_empty() { json!(number) } else { json!(path) };
                if field.t.ends_with("[]byte") {
                    facts["bytes"] = json!(true);
                }
            }
            match (self.shape(&field.t, 0), field.omitempty) {
                _ if field.omitzero => facts["omitzero"] = json!(true),
                (Shape::Pointer, true) => {}
                (Shape::Empty(_), true) => facts["omitzero"] = json!(true),
                _ => facts["zero"] = self.zero(&field.t, 0),
            }
        }
    }

    fn shape(&self, t: &str, depth: usize) -> Shape<'_> {
        match t {
            _ if t.starts_with('*') => return Shape::Pointer,
            _ if t.starts_with("[]") || t.starts_with("map[") || t == "any" || t == "interface{}" => {
                return Shape::Empty(Value::Null);
            }
            "string" => return Shape::Empty(json!("")),
            "bool" => return Shape::Empty(json!(false)),
            "int" | "int32" | "int64" | "uint32" | "uint64" | "float64" | "byte" => {
                return Shape::Empty(json!(0));
            }
            "k8s.io/apimachinery/pkg/api/resource.Quantity" => return Shape::Own(json!("0")),
            "k8s.io/apimachinery/pkg/util/intstr.IntOrString" => return Shape::Own(json!(0)),
            "k8s.io/apimachinery/pkg/apis/meta/v1.Time"
            | "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime"
            | "k8s.io/apimachinery/pkg/runtime.RawExtension"
            | "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1" => return Shape::Own(Value::Null),
            _ => {}
        }
        match self.types.get(t) {
            Some(Declared::Struct(fields)) => Shape::Struct(fields),
            Some(Declared::Named(other)) if depth < MAX_DEPTH => self.shape(other, depth + 1),
            _ => Shape::Own(Value::Null),
        }
    }

    /// What is written for a value that nobody set.
    fn zero(&self, t: &str, depth: usize) -> Value {
        match self.shape(t, 0) {
            Shape::Pointer => Value::Null,
            Shape::Empty(value) | Shape::Own(value) => value,
            Shape::Struct(fields) => {
                let mut written = Map::new();
                if depth < MAX_DEPTH {
                    self.write_zero(fields, &mut written, depth);
                }
                Value::Object(written)
            }
        }
    }

    fn write_zero(&self, fields: &[Field], written: &mut Map<String, Value>, depth: usize) {
        for field in fields {
            let shape = self.shape(&field.t, 0);
            if field.name.is_empty() {
                if let Shape::Struct(inner) = shape {
                    self.write_zero(inner, written, depth + 1);
                }
                continue;
            }
            let dropped =
                field.omitzero || field.omitempty && matches!(shape, Shape::Pointer | Shape::Empty(_));
            if !dropped {
                written.insert(field.name.clone(), self.zero(&field.t, depth + 1));
            }
        }
    }
}

/// `io.k8s.api.apps.v1.Deployment` to `k8s.io/api/apps/v1.Deployment`.
fn go_name(openapi: &str) -> String {
    let Some(rest) = openapi.strip_prefix("io.k8s.") else { return String::new() };
    let Some((package, name)) = rest.rsplit_once('.') else { return String::new() };
    format!("k8s.io/{}.{name}", package.replace('.', "/"))
}

/// Names of imported packages to their paths.
fn imports(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("import ").unwrap_or(line);
        if line.starts_with("type ") || line.starts_with("func ") {
            break;
        }
        let Some((alias, path)) = line.split_once('"') else { continue };
        let Some(path) = path.strip_suffix('"') else { continue };
        let alias = match alias.trim() {
            "" => path.rsplit('/').next().unwrap_or(path),
            alias => alias,
        };
        found.insert(alias.to_owned(), path.to_owned());
    }
    found
}

/// A line of a struct: `Name Type` and its tag, or an embedded type and its tag.
fn field(line: &str, package: &str, imports: &BTreeMap<String, String>) -> Option<Field> {
    let (declaration, rest) = line.trim().split_once('`')?;
    if declaration.starts_with("//") {
        return None;
    }
    let tag = rest.split('`').next()?;
    let json_tag = tag.split("json:\"").nth(1)?.split('"').next()?;
    let mut options = json_tag.split(',');
    let name = options.next()?.to_owned();
    let options: Vec<&str> = options.collect();
    let mut words = declaration.split_whitespace();
    let first = words.next()?;
    let t = words.collect::<Vec<_>>().join("");
    let t = if t.is_empty() { first } else { &t };
    if name == "-" || name.is_empty() && !options.contains(&"inline") {
        return None;
    }
    Some(Field {
        name,
        t: qualify(t, package, imports),
        omitempty: options.contains(&"omitempty"),
        omitzero: options.contains(&"omitzero"),
        number: tag.split("protobuf:\"").nth(1).and_then(|tag| tag.split(',').nth(1)?.parse().ok()),
    })
}

/// Puts the package path before the name of a type.
fn qualify(t: &str, package: &str, imports: &BTreeMap<String, String>) -> String {
    for prefix in ["*", "[]"] {
        if let Some(inner) = t.strip_prefix(prefix) {
            return format!("{prefix}{}", qualify(inner, package, imports));
        }
    }
    if t.starts_with("map[") {
        return t.to_owned();
    }
    match t.split_once('.') {
        Some((alias, name)) => format!("{}.{name}", imports.get(alias).map_or(alias, String::as_str)),
        None if t.chars().next().is_some_and(char::is_uppercase) => format!("{package}.{t}"),
        None => t.to_owned(),
    }
}
