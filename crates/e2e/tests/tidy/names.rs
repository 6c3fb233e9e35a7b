//! The public names of `windlass`: a list in a file, which a change must touch on purpose.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item, UseTree, Visibility};

/// The list, relative to the root of the workspace.
const LIST: &str = "crates/windlass/public-names.txt";
/// Names at the root of `windlass`, besides its modules: what a reader sees at one look.
const ROOT_MAX: usize = 25;

/// A crate and a path in it, or a crate from elsewhere.
type Place = Vec<String>;

/// What a name stands for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Meaning {
    /// A module of one of our crates.
    Module(Place),
    /// Anything else, in words.
    Item(String),
}

/// A public name of a module, or one that it imports for itself.
#[derive(Clone)]
struct Name {
    text: String,
    is_public: bool,
    is_hidden: bool,
    /// What it stands for here, or where to look.
    stands: Result<Meaning, Place>,
}

impl Name {
    /// Whether it is imported by a path that begins with this word.
    fn is_from(&self, word: &str) -> bool {
        self.stands.as_ref().is_err_and(|path| path.first().is_some_and(|first| first == word))
    }
}

/// The names of each module that was read so far. A glob is the name `*`.
#[derive(Default)]
struct Tree(BTreeMap<Place, Vec<Name>>);

fn has_word(attributes: &[Attribute], path: &str, word: &str) -> bool {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident(path))
        .filter_map(|attribute| attribute.meta.require_list().ok())
        .any(|list| list.tokens.to_string() == word)
}

/// The file of a module that is declared in another file.
fn file_of(folder: &Path, module: &str) -> PathBuf {
    let beside = folder.join(format!("{module}.rs"));
    let inside = folder.join(module).join("mod.rs");
    if e2e::workspace_root().join(&beside).is_file() { beside } else { inside }
}

/// The name, the visibility and the description of an item that has them.
fn described(item: &Item) -> Option<(String, &Visibility, &[Attribute], &'static str)> {
    let (ident, vis, attributes, kind) = match item {
        Item::Const(item) => (&item.ident, &item.vis, &item.attrs, "const"),
        Item::Enum(item) => (&item.ident, &item.vis, &item.attrs, "enum"),
        Item::Fn(item) => (&item.sig.ident, &item.vis, &item.attrs, "fn"),
        Item::Static(item) => (&item.ident, &item.vis, &item.attrs, "static"),
        Item::Struct(item) => (&item.ident, &item.vis, &item.attrs, "struct"),
        Item::Trait(item) => (&item.ident, &item.vis, &item.attrs, "trait"),
        Item::Type(item) => (&item.ident, &item.vis, &item.attrs, "type"),
        _ => return None,
    };
    Some((ident.to_string(), vis, attributes, kind))
}

impl Tree {
    fn of_crate(&mut self, name: &str) {
        let place = vec![name.to_owned()];
        if !self.0.contains_key(&place) {
            let folder = PathBuf::from("crates").join(name.replace('_', "-")).join("src");
            let file = syn::parse_file(&e2e::read(folder.join("lib.rs"))).unwrap();
            self.module(&place, &folder, &file.items);
        }
    }

    fn module(&mut self, place: &Place, folder: &Path, items: &[Item]) {
        let mut names = Vec::new();
        for item in items {
            if let Item::Mod(module) = item {
                if has_word(&module.attrs, "cfg", "test") {
                    continue;
                }
                let name = module.ident.to_string();
                let inner = [place.as_slice(), std::slice::from_ref(&name)].concat();
                let below = folder.join(&name);
                if let Some((_, items)) = &module.content {
                    self.module(&inner, &below, items);
                } else {
                    let file = syn::parse_file(&e2e::read(file_of(folder, &name))).unwrap();
                    self.module(&inner, &below, &file.items);
                }
                let is_public = matches!(module.vis, Visibility::Public(_));
                let is_hidden = has_word(&module.attrs, "doc", "hidden");
                names.push(Name { text: name, is_public, is_hidden, stands: Ok(Meaning::Module(inner)) });
            } else if let Item::Use(import) = item {
                let start = Name {
                    text: String::new(),
                    is_public: matches!(import.vis, Visibility::Public(_)),
                    is_hidden: has_word(&import.attrs, "doc", "hidden"),
                    stands: Err(Vec::new()),
                };
                imports(&import.tree, &[], &start, &mut names);
            } else if let Some((name, vis, attributes, kind)) = described(item) {
                let derives =
                    attributes.iter().find(|attribute| attribute.path().is_ident("proc_macro_derive"));
                let tokens = derives.and_then(|derive| derive.meta.require_list().ok());
                let names_of_derive = tokens.map(|list| list.tokens.to_string());
                let (name, kind) = match &names_of_derive {
                    Some(text) => (text.split(',').next().unwrap().trim().to_owned(), "derive"),
                    None => (name, kind),
                };
                let may_grow = attributes.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
                let words = format!("{kind}{}", if may_grow { ", may grow" } else { "" });
                names.push(Name {
                    text: name,
                    is_public: matches!(vis, Visibility::Public(_)),
                    is_hidden: has_word(attributes, "doc", "hidden"),
                    stands: Ok(Meaning::Item(words)),
                });
            }
        }
        self.0.insert(place.clone(), names);
    }

    /// The place that a path in a module means.
    fn absolute(&mut self, from: &Place, path: &[String]) -> Place {
        let first = path[0].as_str();
        let rest = &path[1..];
        match first {
            "crate" => [&from[..1], rest].concat(),
            "self" => [from.as_slice(), rest].concat(),
            "super" => {
                self.absolute(&from[..from.len() - 1].to_vec(), &[&["self".to_owned()], rest].concat())
            }
            // A name of this module, also one that it imports from another. A crate is imported by its own name.
            _ if self.0[from].iter().any(|name| name.text == first && !name.is_from(first)) => {
                [from.as_slice(), path].concat()
            }
            _ => path.to_vec(),
        }
    }

    /// What a place stands for: a trait and a derive may share a name.
    fn meanings(&mut self, place: &Place) -> BTreeSet<Meaning> {
        if !place[0].starts_with("windlass") {
            return [Meaning::Item(format!("from {}", place.join("::")))].into();
        }
        self.of_crate(&place[0]);
        let (last, module) = match place.as_slice() {
            [_] => return [Meaning::Module(place.clone())].into(),
            [module @ .., last] => (last.clone(), module.to_vec()),
            [] => panic!("a path has a first word"),
        };
        let Some(Meaning::Module(module)) = self.meanings(&module).into_iter().next() else {
            return BTreeSet::new();
        };
        let mut found = BTreeSet::new();
        for name in self.0[&module].clone() {
            match name.stands {
                Ok(meaning) if name.text == last => drop(found.insert(meaning)),
                Err(path) if name.text == last => {
                    let place = self.absolute(&module, &path);
                    found.extend(self.meanings(&place));
                }
                Err(path) if name.text == "*" && name.is_public => {
                    let place = [self.absolute(&module, &path), vec![last.clone()]].concat();
                    found.extend(self.meanings(&place));
                }
                _ => {}
            }
        }
        found
    }

    /// The names that a module shows, with what they stand for and whether they are hidden.
    fn shown(&mut self, module: &Place) -> BTreeSet<(String, Meaning, bool)> {
        let mut shown = BTreeSet::new();
        for name in self.0[module].clone().into_iter().filter(|name| name.is_public) {
            match name.stands {
                Ok(meaning) => drop(shown.insert((name.text, meaning, name.is_hidden))),
                Err(path) => {
                    let place = self.absolute(module, &path);
                    let meanings = self.meanings(&place);
                    assert!(
                        !meanings.is_empty(),
                        "{}: {} leads to nothing",
                        module.join("::"),
                        path.join("::")
                    );
                    if name.text == "*" {
                        let Some(Meaning::Module(inner)) = meanings.into_iter().next() else { continue };
                        shown.extend(self.shown(&inner));
                    } else {
                        let named = |meaning| (name.text.clone(), meaning, name.is_hidden);
                        shown.extend(meanings.into_iter().map(named));
                    }
                }
            }
        }
        shown
    }

    /// Writes a module and the public modules in it, each below a line with its path.
    fn write(&mut self, path: &str, module: &Place, hidden: bool, text: &mut String) {
        let shown = self.shown(module);
        writeln!(text, "\n{path}{}", if hidden { " (hidden)" } else { "" }).unwrap();
        let mut modules = Vec::new();
        for (name, meaning, is_hidden) in shown {
            match meaning {
                Meaning::Item(words) => {
                    let hidden = if is_hidden { ", hidden" } else { "" };
                    writeln!(text, "    {name}: {words}{hidden}").unwrap();
                }
                Meaning::Module(inner) => modules.push((name, inner, is_hidden)),
            }
        }
        for (name, inner, is_hidden) in modules {
            self.write(&format!("{path}::{name}"), &inner, hidden || is_hidden, text);
        }
    }
}

/// Adds every name that a tree of imports brings.
fn imports(tree: &UseTree, path: &[String], start: &Name, names: &mut Vec<Name>) {
    let below = |word: &syn::Ident| [path, &[word.to_string()]].concat();
    let mut add = |name: String, place: Place| {
        names.push(Name { text: name, stands: Err(place), ..start.clone() });
    };
    match tree {
        UseTree::Path(inner) => imports(&inner.tree, &below(&inner.ident), start, names),
        UseTree::Group(group) => {
            for inner in &group.items {
                imports(inner, path, start, names);
            }
        }
        UseTree::Name(name) if name.ident == "self" => add(path.last().unwrap().clone(), path.to_vec()),
        UseTree::Name(name) => add(name.ident.to_string(), below(&name.ident)),
        UseTree::Rename(rename) if rename.ident == "self" => add(rename.rename.to_string(), path.to_vec()),
        UseTree::Rename(rename) => add(rename.rename.to_string(), below(&rename.ident)),
        UseTree::Glob(_) => add("*".to_owned(), path.to_vec()),
    }
}

fn public_names() -> String {
    let mut tree = Tree::default();
    tree.of_crate("windlass");
    let mut text =
        "The public names of windlass and of its public modules. A test writes and compares them.\n\
                    A type that may grow is #[non_exhaustive].\n"
            .to_owned();
    tree.write("windlass", &vec!["windlass".to_owned()], false, &mut text);
    text
}

#[test]
fn the_public_names_are_the_listed_ones() {
    let names = public_names();
    let path = e2e::workspace_root().join(LIST);
    if std::env::var_os("WINDLASS_BLESS").is_some() {
        std::fs::write(&path, &names).unwrap();
    }
    let listed = std::fs::read_to_string(&path).unwrap_or_default();
    let missing = |of: &str, from: &str| -> Vec<String> {
        // A line counts together with the module above it.
        let full = |text: &str| -> Vec<String> {
            let mut module = String::new();
            let mut lines = Vec::new();
            for line in text.lines() {
                match line.strip_prefix("    ") {
                    Some(name) => lines.push(format!("{module}::{name}")),
                    None => line.clone_into(&mut module),
                }
            }
            lines
        };
        let (of, from) = (full(of), full(from));
        of.into_iter().filter(|line| !from.contains(line)).collect()
    };
    assert!(
        names == listed,
        "A public name of windlass came, went or changed.\n  new:  {:#?}\n  gone: {:#?}\n\
         If that is on purpose, run\n    WINDLASS_BLESS=1 cargo test -p e2e --test tidy public_names\n\
         and commit {LIST} with the change. If not, make the name private.",
        missing(&names, &listed),
        missing(&listed, &names),
    );
}

#[test]
fn the_root_shows_few_names() {
    let mut tree = Tree::default();
    tree.of_crate("windlass");
    let shown = tree.shown(&vec!["windlass".to_owned()]);
    let names: BTreeSet<String> = shown
        .into_iter()
        .filter(|(_, meaning, _)| matches!(meaning, Meaning::Item(words) if !words.starts_with("from ")))
        .map(|(name, _, _)| name)
        .collect();
    assert!(names.len() <= ROOT_MAX, "{} names at the root: {names:?}", names.len());
}
