//! `js/wasm/generated.ts` and `operations.ts` are what Rust writes. It runs before a build, which would write them again.

#![cfg(not(target_arch = "wasm32"))]

const COMMITTED: &str = include_str!("../../../js/wasm/generated.ts");
const OPERATIONS: &str = include_str!("../../../js/wasm/operations.ts");

/// The tokens of TypeScript, which a formatter keeps: it moves blanks, chooses quotes, and adds commas at ends.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut rest = code.chars().peekable();
    while let Some(first) = rest.next() {
        let mut token = String::from(first);
        match first {
            _ if first.is_whitespace() => continue,
            '"' | '\'' => {
                token = "string ".into();
                while let Some(next) = rest.next().filter(|next| *next != first) {
                    token.extend(if next == '\\' { rest.next() } else { Some(next) });
                }
            }
            // A comment, to the end of its line.
            '/' => token.extend(rest.by_ref().take_while(|next| *next != '\n')),
            _ if first.is_alphanumeric() => {
                while let Some(next) = rest.next_if(|next| next.is_alphanumeric()) {
                    token.push(next);
                }
            }
            // A list of alternatives that is too long for a line has one before its first.
            '|' if tokens.last().is_some_and(|last| last == "=") => continue,
            '}' | ']' if tokens.last().is_some_and(|last| last == ",") => {
                tokens.pop();
            }
            _ => {}
        }
        tokens.push(token);
    }
    tokens
}

#[test]
fn the_committed_files_are_what_rust_writes() {
    compare("generated", COMMITTED, &tollgate_npm::generated::typescript());
    compare("operations", OPERATIONS, &tollgate_npm::generated::operations_typescript());
}

fn compare(name: &str, committed: &str, written: &str) {
    let (committed, written) = (tokens(committed), tokens(written));
    let differ = committed.iter().zip(&written).position(|(committed, written)| committed != written);
    let at = differ.unwrap_or(committed.len().min(written.len()));
    let around = |tokens: &[String]| tokens.iter().skip(at.saturating_sub(8)).take(16).cloned().collect::<Vec<_>>();
    assert_eq!(around(&committed), around(&written), "js/wasm/{name}.ts is out of date; `npm run build` writes it");
    assert_eq!(committed.len(), written.len());
}

#[test]
fn only_the_format_may_differ() {
    let same = [r#"a = { b: "c\"d", e: [1, 2] };"#, "a = {\n  b: 'c\"d',\n  e: [\n1,\n2,\n],\n};\n"];
    assert_eq!(tokens(same[0]), tokens(same[1]));
    for other in [r#"a = { b: "cd", e: [1, 2] };"#, r#"a = { b: "c\"d", e: [12] };"#, r#"a = { b: "c\"d" };"#] {
        assert_ne!(tokens(same[0]), tokens(other));
    }
}
