//! `/docs`: the OpenAPI document as a page, without scripts or anything from elsewhere.

use std::fmt::Write as _;

use serde_json::Value;

/// The page.
pub(super) fn page(document: &Value) -> String {
    let title = text(&document["info"]["title"]);
    let mut rows = String::new();
    for (path, operations) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                rows,
                "<tr><td>{}</td><td><code>{} {}</code></td><td>{}</td></tr>",
                text(&operation["tags"][0]),
                method.to_uppercase(),
                escaped(path),
                text(&operation["summary"]),
            );
        }
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>\n\
         <h1>{title}</h1>\n<p>{}</p>\n<table>\n{rows}</table>\n\
         <p><a href=\"openapi.json\">openapi.json</a> has the whole, <a href=\"schema\">schema</a> the environment's types.</p>\n\
         </body></html>\n",
        text(&document["info"]["description"]),
    )
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::page;

    #[test]
    fn a_page_lists_the_routes() {
        let page = page(&json!({
            "info": {"title": "A <b>", "description": "it & more"},
            "paths": {"/{env_name}/splits": {"get": {"tags": ["Task API"], "summary": "Splits"}}},
        }));
        assert!(page.contains("<h1>A &lt;b&gt;</h1>") && page.contains("it &amp; more"), "{page}");
        assert!(
            page.contains("<td>Task API</td><td><code>GET /{env_name}/splits</code></td><td>Splits</td>"),
            "{page}"
        );
    }
}
