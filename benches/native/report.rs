//! Markdown, the machine, and the place in `bench/RESULTS.md`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

const TITLE: &str = "## Native Rust";
const START: &str = "<!-- native: start, written by `npm run bench -- native` -->";
const END: &str = "<!-- native: end -->";

/// A markdown table.
pub(crate) fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let rule = format!("|---{}|", "|---:".repeat(head.len() - 1));
    let rows = rows.iter().map(|row| line(row));
    [line(head), rule].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
}

/// What the numbers were measured with.
pub(crate) fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<&str> = cpus.lines().filter(|line| line.starts_with("model name")).collect();
    let model = models.first().and_then(|line| line.split_once(": ")).map_or("CPU unknown", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let governor = locked("governor").unwrap_or_else(|| "unknown".into());
    // A busy machine shows most in the longest hit and where memory is slow.
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
    format!(
        "{}, {cores} cores, {model}, load {load} at the start, {}; tollgate {}, governor {governor}",
        said("date", &["-u", "+%Y-%m-%d"]),
        said(&std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()), &["--version"]),
        env!("CARGO_PKG_VERSION"),
    )
}

/// The version of a dependency.
fn locked(name: &str) -> Option<String> {
    let lock = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock")).ok()?;
    let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    Some(after.split_once('"')?.0.into())
}

/// The first line that a command prints.
fn said(command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").into()
}

/// Puts the text into its own section of `bench/RESULTS.md`, and leaves all others as they are.
pub(crate) fn save(text: &str) -> io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/RESULTS.md");
    let before = match fs::read_to_string(&path) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "# Results\n".into(),
        Err(error) => return Err(error),
    };
    let section = format!("{START}\n{TITLE}\n\n{text}\n{END}");
    let after = match (before.find(START), before.find(END)) {
        (Some(start), Some(end)) if start < end => {
            format!("{}{section}{}", &before[..start], &before[end + END.len()..])
        }
        _ => format!("{}\n\n{section}\n", before.trim_end()),
    };
    fs::create_dir_all(path.with_file_name(""))?;
    fs::write(path, after)
}
