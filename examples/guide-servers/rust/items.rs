//! Tools that stay inside: searching, looking through code, items, settings, users.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib::sources::mods::AgentTool;

use super::{
    DESTROYS, Fault, GuideMod, READS, Said, Shelf, WRITES, WRITES_ONCE,
    arguments::{
        AnalyzeCode, BatchGetItems, BatchUpdate, ById, Changes, CreateItem, DeleteDatabase,
        EnsureUserExists, ListItems, Nothing, SearchItems, SearchWeb, Status, UpdateItem,
    },
    failed, invalid,
};

static PAGES: [(&str, &str); 4] = [
    ("The Rust book", "https://books.example/rust"),
    ("Rust in the workshop", "https://books.example/workshop"),
    ("Learning Python", "https://books.example/python"),
    ("TypeScript in a week", "https://books.example/typescript"),
];

/// How many items and users there may be.
const ROOM: usize = 1000;

/// One item of the crib.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) title: String,
    description: String,
    pub(super) category: String,
    pub(super) status: Status,
    pub(super) weight: f64,
}

pub(super) fn samples() -> Vec<Item> {
    let rows = [
        ("Claw hammer", "hand", Status::Active, 0.6),
        ("Block plane", "hand", Status::Active, 0.9),
        ("Hand drill", "hand", Status::Archived, 1.1),
        ("Band saw", "machine", Status::Active, 85.0),
        ("Drill press", "machine", Status::Active, 120.5),
        ("Belt sander", "machine", Status::Archived, 30.0),
        ("Steel rule", "measure", Status::Active, 0.1),
    ];
    let item = |(at, (title, category, status, weight)): (usize, (&str, &str, Status, f64))| Item {
        id: format!("item-{}", at + 1),
        title: title.to_owned(),
        description: String::new(),
        category: category.to_owned(),
        status,
        weight,
    };
    rows.into_iter().enumerate().map(item).collect()
}

impl GuideMod {
    pub(super) fn item_tools(&self) -> Vec<AgentTool> {
        vec![
            self.tool("create_item", "Create a new item and give it an id", WRITES, create_item),
            self.tool("get_item", "Get one item by its id", READS, get_item),
            self.tool(
                "update_item",
                "Change an item; what is left out stays as it is",
                WRITES_ONCE,
                update_item,
            ),
            self.tool("delete_item", "Delete one item by its id", DESTROYS, delete_item),
            self.tool(
                "search_items",
                "Search items by a part of their title, with filters",
                READS,
                search_items,
            ),
            self.tool("list_items", "List the ids of all items, page by page", READS, list_items),
            self.tool(
                "batch_update",
                "Update several items: all of them, or none",
                WRITES_ONCE,
                batch_update,
            ),
            self.tool("batch_get_items", "Get several items with one call", READS, batch_get_items),
        ]
    }

    pub(super) fn other_tools(&self) -> Vec<AgentTool> {
        vec![
            self.tool(
                "search_web",
                "Search the stored pages for words of their titles",
                READS,
                search_web,
            ),
            self.tool(
                "analyze_code",
                "Look through source code for doubtful lines; the code is never run",
                READS,
                analyze_code,
            ),
            self.tool("get_config", "Get the settings; secrets are masked", READS, get_config),
            self.tool("delete_database", "Delete every item for good", DESTROYS, delete_database),
            self.tool(
                "ensure_user_exists",
                "Create a user unless there is one of that name",
                WRITES_ONCE,
                ensure_user_exists,
            ),
        ]
    }
}

async fn search_web(_: Arc<Shelf>, SearchWeb { query, limit }: SearchWeb) -> Said {
    let wanted = query.to_lowercase();
    let found: Vec<_> =
        PAGES.iter().filter(|(title, _)| title.to_lowercase().contains(&wanted)).collect();
    let shown: Vec<_> = found.iter().take(limit as usize).collect();
    let mut lines = vec![format!("Found {} results for: {query}", found.len())];
    lines.extend(shown.iter().map(|(title, _)| (*title).to_owned()));
    let results: Vec<Value> =
        shown.iter().map(|(title, url)| json!({ "title": title, "url": url })).collect();
    Ok((lines.join("\n"), json!({ "query": query, "total": found.len(), "results": results })))
}

/// What a doubtful line looks like, what that is called, and what to do about it.
type Rule = (fn(&str) -> bool, &'static str, &'static str);

static RULES: [Rule; 3] = [
    (|line| line.contains("eval("), "eval", "call what is meant directly"),
    (|line| line.contains("TODO"), "todo", "do it, or open an issue"),
    (|line| line.chars().count() > 100, "long", "break the line"),
];

fn find_issues(code: &str) -> Vec<(usize, &'static Rule)> {
    let lines = code.split('\n').enumerate();
    lines
        .flat_map(|(at, line)| {
            RULES.iter().filter(move |it| (it.0)(line)).map(move |it| (at + 1, it))
        })
        .collect()
}

async fn analyze_code(_: Arc<Shelf>, AnalyzeCode { code }: AnalyzeCode) -> Said {
    let (lines, issues) = (code.split('\n').count(), find_issues(&code));
    let mut said = vec![format!("{lines} lines, {} issues", issues.len())];
    said.extend(
        issues.iter().map(|(line, (_, rule, advice))| format!("line {line}: {rule}: {advice}")),
    );
    let issue = |(line, (_, rule, advice)): &(usize, &Rule)| json!({ "line": line, "rule": rule, "suggestion": advice });
    let issues: Vec<Value> = issues.iter().map(issue).collect();
    Ok((said.join("\n"), json!({ "lines": lines, "issues": issues })))
}

fn missing(id: &str) -> Fault {
    Fault::Failed(format!("there is no item `{id}`; search_items finds what there is"))
}

fn find<'a>(items: &'a mut [Item], id: &str) -> Result<&'a mut Item, Fault> {
    items.iter_mut().find(|it| it.id == id).ok_or_else(|| missing(id))
}

fn change(item: &mut Item, changes: Changes) {
    let Changes { title, description, status, weight } = changes;
    item.title = title.unwrap_or_else(|| item.title.clone());
    item.description = description.unwrap_or_else(|| item.description.clone());
    item.status = status.unwrap_or(item.status);
    item.weight = weight.unwrap_or(item.weight);
}

async fn create_item(shelf: Arc<Shelf>, new: CreateItem) -> Said {
    let mut items = shelf.items.lock();
    if items.len() >= ROOM {
        return failed(format!("there is room for {ROOM} items"));
    }
    let mut created = shelf.created.lock();
    *created += 1;
    let CreateItem { title, description, category, weight } = new;
    let (id, weight) = (format!("item-{created}"), weight.unwrap_or_default());
    let item = Item { id, title, description, category, status: Status::Active, weight };
    items.push(item.clone());
    Ok((format!("Created {}", item.id), json!(item)))
}

async fn get_item(shelf: Arc<Shelf>, ById { id }: ById) -> Said {
    let mut items = shelf.items.lock();
    let item = find(&mut items, &id)?;
    Ok((format!("{id}: {}", item.title), json!(item)))
}

async fn update_item(shelf: Arc<Shelf>, update: UpdateItem) -> Said {
    let (id, changes) = update.split();
    let mut items = shelf.items.lock();
    let item = find(&mut items, &id)?;
    if changes == Changes::default() {
        return invalid("name at least one thing to change");
    }
    change(item, changes);
    Ok((format!("Updated {id}"), json!(item)))
}

async fn delete_item(shelf: Arc<Shelf>, ById { id }: ById) -> Said {
    let mut items = shelf.items.lock();
    find(&mut items, &id)?;
    items.retain(|it| it.id != id);
    Ok((format!("Deleted {id}"), json!({ "deleted": id })))
}

async fn search_items(shelf: Arc<Shelf>, search: SearchItems) -> Said {
    let wanted = search.query.to_lowercase();
    let fits = |it: &&Item| {
        it.title.to_lowercase().contains(&wanted)
            && search.category.as_ref().is_none_or(|category| *category == it.category)
            && search.status.is_none_or(|status| status == it.status)
    };
    let items = shelf.items.lock();
    let found: Vec<&Item> = items.iter().filter(fits).collect();
    let shown: Vec<_> = found.iter().take(search.limit as usize).collect();
    Ok((format!("Found {} items", found.len()), json!({ "total": found.len(), "items": shown })))
}

async fn list_items(shelf: Arc<Shelf>, ListItems { page, limit }: ListItems) -> Said {
    let items = shelf.items.lock();
    let begin = (page as usize).saturating_sub(1) * limit as usize;
    let shown: Vec<&str> =
        items.iter().skip(begin).take(limit as usize).map(|it| it.id.as_str()).collect();
    let total = items.len();
    let said = if shown.is_empty() {
        format!("No items on page {page} of {total} items")
    } else {
        format!("Items {} to {} of {total}", begin + 1, begin + shown.len())
    };
    Ok((said, json!({ "items": shown, "page": page, "limit": limit, "total": total })))
}

async fn batch_update(shelf: Arc<Shelf>, BatchUpdate { items: wanted }: BatchUpdate) -> Said {
    let mut items = shelf.items.lock();
    // All of them are there before the first is changed.
    for it in &wanted {
        find(&mut items, &it.id)?;
    }
    let ids: Vec<String> = wanted.iter().map(|it| it.id.clone()).collect();
    for it in wanted {
        change(find(&mut items, &it.id)?, it.changes);
    }
    Ok((format!("Updated {} items", ids.len()), json!({ "updated": ids })))
}

async fn batch_get_items(shelf: Arc<Shelf>, BatchGetItems { item_ids }: BatchGetItems) -> Said {
    let items = shelf.items.lock();
    let by_id = |id: &String| items.iter().find(|it| it.id == *id);
    let found: Vec<&Item> = item_ids.iter().filter_map(by_id).collect();
    let missing: Vec<&String> = item_ids.iter().filter(|it| by_id(it).is_none()).collect();
    let said = format!("Got {} of {} items", found.len(), item_ids.len());
    Ok((said, json!({ "items": found, "missing": missing })))
}

async fn get_config(_: Arc<Shelf>, Nothing {}: Nothing) -> Said {
    // The key itself never comes near a result.
    let said = "mode: workshop, page size: 20, api key: ****".to_owned();
    Ok((said, json!({ "mode": "workshop", "pageSize": 20, "apiKey": "****" })))
}

async fn delete_database(shelf: Arc<Shelf>, wanted: DeleteDatabase) -> Said {
    if !wanted.confirm {
        return invalid("confirm must be true, since every item is deleted");
    }
    let mut items = shelf.items.lock();
    let gone = items.len();
    items.clear();
    Ok((format!("Deleted {gone} items of {}", wanted.name), json!({ "deleted": gone })))
}

async fn ensure_user_exists(shelf: Arc<Shelf>, wanted: EnsureUserExists) -> Said {
    let EnsureUserExists { username, email } = wanted;
    let mut users = shelf.users.lock();
    let is_new = !users.contains_key(&username);
    if is_new && users.len() >= ROOM {
        return failed(format!("there is room for {ROOM} users"));
    }
    users.entry(username.clone()).or_insert(email);
    let done = if is_new { "Created" } else { "Found" };
    let said = format!("{done} user {username}");
    Ok((said, json!({ "username": username, "created": is_new })))
}
